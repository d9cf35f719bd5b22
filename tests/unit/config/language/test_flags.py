"""Validation of flags, which is the only one of serving settings before a node is changed."""

from __future__ import annotations

import pytest

from kube_scheduler_operator.config.language.feature_gates import (
    Gates,
    has_gate,
    known_gates,
    parse_gates,
)
from kube_scheduler_operator.config.language.flags import validate_flags
from kube_scheduler_operator.config.language.versions import Version

V135 = Version(1, 35, 4)


def messages(name: str, *values: str, version: Version = V135, stock: bool = True) -> list[str]:
    return [p.message for p in validate_flags({name: list(values)}, version, stock=stock)]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("tls-min-version", "VersionTLS12"),
        ("tls-min-version", ""),
        ("tls-cipher-suites", "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,TLS_RSA_WITH_RC4_128_SHA"),
        ("tls-cipher-suites", ""),
        ("bind-address", "127.0.0.1"),
        ("bind-address", "::"),
        ("bind-address", ""),
        ("secure-port", "65535"),
        ("cert-dir", "/var/run/kubernetes"),
        ("profiling", "T"),
        ("v", "10"),
        ("log-flush-frequency", "5s"),
        ("kube-api-qps", "0.5"),
        ("feature-gates", "AllAlpha=true"),
        ("vmodule", "schedule_one=5"),
    ],
)
def test_good_values_pass(name: str, value: str) -> None:
    assert messages(name, value) == []


@pytest.mark.parametrize(
    ("name", "value", "part"),
    [
        ("tls-min-version", "VersionTLS1.2", 'did you mean "VersionTLS12"?'),
        ("tls-min-version", "1.2", "use VersionTLS10, VersionTLS11, VersionTLS12 or VersionTLS13"),
        ("tls-cipher-suites", "TLS_AES_128_GCM", 'did you mean "TLS_AES_128_GCM_SHA256"?'),
        ("tls-cipher-suites", "NULL", "use an IANA name"),
        (
            "tls-cipher-suites",
            "ECDHE-RSA-AES128-GCM-SHA256",
            '"TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"',
        ),
        ("tls-cipher-suites", "AES128-SHA", '"TLS_RSA_WITH_AES_128_CBC_SHA"'),
        ("tls-cipher-suites", "ECDHE-ECDSA-CHACHA20-POLY1305", "_WITH_CHACHA20_POLY1305"),
        ("bind-address", "localhost", "is not an IP address"),
        ("secure-port", "0", "0 turns off /healthz and /metrics; use 1 to 65535"),
        ("secure-port", "https", "write an integer"),
        ("tls-cert-file", "tls.crt", "start it with /"),
        ("profiling", "yes", "write true"),
        ("profiling", "'false'", "write false"),
        ("v", "two", "write an integer"),
        ("v", "-1", "use 0 to 10"),
        ("log-flush-frequency", "5", "write 5s"),
        ("logging-format", "xml", "use text or json"),
        ("vmodule", "scheduler", "write one such as scheduler*=5"),
        ("allow-metric-labels", "x", "write one with an equals sign"),
        ("tls-sni-cert-key", "/tls.crt", "write CERT,KEY"),
        ("tls-cert-file", "/tls.crt", "set both or neither"),
        ("show-hidden-metrics-for-version", "1.30", "write 1.34, or remove it"),
        ("feature-gates", "A", "write A=true or A=false"),
        ("feature-gates", "AllAlpha=on", "write NAME=true or NAME=false"),
        ("secure-prot", "1", 'did you mean "secure-port"?'),
    ],
)
def test_bad_values_are_named_with_their_fix(name: str, value: str, part: str) -> None:
    (message,) = messages(name, value)
    assert f"--{name}" in message
    assert part in message


ONE, TWO = "TLS_AES_128_GCM_SHA256", "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256"


@pytest.mark.parametrize(
    ("flags", "starts"),
    [
        ({"tls-cipher-suites": [ONE]}, False),
        ({"tls-cipher-suites": [ONE], "tls-min-version": ["VersionTLS12"]}, False),
        ({"tls-cipher-suites": [ONE], "disable-http2-serving": ["false"]}, False),
        ({"tls-cipher-suites": [ONE], "tls-min-version": ["VersionTLS13"]}, True),
        ({"tls-cipher-suites": [ONE], "disable-http2-serving": ["true"]}, True),
        ({"tls-cipher-suites": [f"{ONE},{TWO}"]}, True),
        ({"tls-cipher-suites": [ONE, TWO]}, True),
        ({"tls-cipher-suites": [""]}, True),
        ({"tls-min-version": ["VersionTLS12"]}, True),
    ],
)
def test_cipher_suites_with_which_http2_does_not_start(
    flags: dict[str, list[str]], starts: bool
) -> None:
    problems = list(validate_flags(flags, V135))
    assert [problem.path for problem in problems] == ([] if starts else [("tls-cipher-suites",)])
    assert all("because HTTP/2 below TLS 1.3 requires" in problem.message for problem in problems)


def test_a_wrong_flag_is_reported_once() -> None:
    assert len(messages("tls-cipher-suites", "NOPE")) == 1
    flags = {"tls-cipher-suites": [ONE], "disable-http2-serving": ["maybe"]}
    assert [problem.path for problem in validate_flags(flags, V135)] == [("disable-http2-serving",)]


@pytest.mark.parametrize("name", ["address", "port"])
def test_insecure_serving_ends_with_1_24(name: str) -> None:
    assert messages(name, "0", version=Version(1, 23)) == []
    (message,) = messages(name, "0", version=Version(1, 24))
    assert f"kube-scheduler 1.24 has no flag --{name}" in message


def test_unknown_flags_are_left_to_a_custom_image_and_to_versions_not_on_record() -> None:
    assert messages("brand-new", "1") != []
    assert messages("brand-new", "1", stock=False) == []
    assert messages("brand-new", "1", version=Version(1, 33)) == []


@pytest.mark.parametrize(
    ("name", "value", "since"),
    [("min-compatibility-version", "1.34", 35), ("tls-curve-preferences", "29,23", 36)],
)
def test_later_flags_are_unknown_in_earlier_versions(name: str, value: str, since: int) -> None:
    assert messages(name, value, version=Version(1, since)) == []
    (message,) = messages(name, value, version=Version(1, since - 1))
    assert message.endswith(f"has no flag --{name}; it was added in 1.{since}")


@pytest.mark.parametrize("value", ["P256", "0", "65536", "29,29", "29,"])
def test_curves_are_unique_numbers(value: str) -> None:
    assert len(messages("tls-curve-preferences", value, version=Version(1, 36))) == 1


@pytest.mark.parametrize(
    ("value", "part"),
    [
        ("StorageCapacityScorin=true", 'did you mean "StorageCapacityScoring"?'),
        ("kube:NoSuchThing=true", "has no feature gate NoSuchThing; remove it"),
        ("WorkloadAwarePreemption=true", "WorkloadAwarePreemption, which was added in 1.36; "),
        ("SizeMemoryBackedVolumes=true", "SizeMemoryBackedVolumes, which was removed in 1.35; "),
        ("DynamicResourceAllocation=false", "is locked to true in 1.35"),
    ],
)
def test_feature_gates_of_a_version_on_record(value: str, part: str) -> None:
    (problem,) = validate_flags({"feature-gates": [value]}, V135)
    assert part in problem.message
    assert problem.path == ("feature-gates", value.rpartition(":")[2].partition("=")[0])
    assert messages("feature-gates", value, stock=False) == []
    assert messages("feature-gates", value, version=Version(1, 99)) == []


@pytest.mark.parametrize(
    ("value", "minor", "gate", "message"),
    [
        (
            "GangScheduling=true",
            35,
            "GangScheduling",
            "feature gate GangScheduling needs GenericWorkload, which is disabled; add "
            "GenericWorkload=true, or remove GangScheduling",
        ),
        (
            "DRAConsumableCapacity=false",
            38,
            "DRAConsumableCapacity",
            "feature gate DRAFractionalCapacityRange is enabled and needs DRAConsumableCapacity, "
            "which is disabled; add DRAFractionalCapacityRange=false, or enable "
            "DRAConsumableCapacity",
        ),
        (
            "CompositePodGroup=true",
            37,
            "CompositePodGroup",
            "feature gate CompositePodGroup needs GenericWorkload and "
            "TopologyAwareWorkloadScheduling, which are disabled; add GenericWorkload=true and "
            "TopologyAwareWorkloadScheduling=true, or remove CompositePodGroup",
        ),
    ],
)
def test_a_gate_needs_others(value: str, minor: int, gate: str, message: str) -> None:
    (problem,) = validate_flags({"feature-gates": [value]}, Version(1, minor))
    assert (problem.path, problem.message) == (("feature-gates", gate), message)
    emulated = {"feature-gates": [value], "emulated-version": ["1.34"]}
    assert list(validate_flags(emulated, Version(1, minor))) == []


def test_the_gates_of_a_stage_have_what_they_need() -> None:
    for value in ("AllAlpha=true", "AllBeta=false"):
        assert messages("feature-gates", value, version=V135) == []
    # In 1.37 GenericWorkload is beta and off, and alpha gates need it.
    found = messages("feature-gates", "AllAlpha=true", version=Version(1, 37))
    assert any("WorkloadWithJob is enabled and needs GenericWorkload" in one for one in found)
    both = messages("feature-gates", "AllAlpha=true,GenericWorkload=true", version=Version(1, 37))
    assert both == []


def test_feature_gates_that_a_version_knows_pass() -> None:
    known = known_gates(35)
    assert known is not None
    settable = ",".join(f"{name}=true" for name, locked in known.items() if locked is None)
    assert messages("feature-gates", settable) == []


@pytest.mark.parametrize(
    ("gate", "version", "known"),
    [
        ("StorageCapacityScoring", Version(1, 33), True),
        ("StorageCapacityScoring", Version(1, 32), False),
        ("VolumeCapacityPriority", Version(1, 33), False),
        ("VolumeCapacityPriority", Version(1, 33, 99), False),  # removed is removed
        ("StorageCapacityScoring", Version(1, 32, 99), None),  # a patch may bring it
        ("Brand", Version(1, 36), False),
        ("Brand", Version(1, 36, 99), None),
        ("AllAlpha", Version(1, 29), True),
        ("AllAlpha", Version(1, 28), None),
        ("AllAlpha", Version(1, 99), None),
    ],
)
def test_whether_a_version_knows_a_gate(gate: str, version: Version, known: bool | None) -> None:
    assert has_gate(version, gate) is known
    refused = messages("feature-gates", f"{gate}=true", version=version) != []
    assert refused == (known is False)


@pytest.mark.parametrize("minor", range(29, 37))
def test_every_supported_version_is_on_record(minor: int) -> None:
    known = known_gates(minor)
    assert known is not None
    assert {"AllAlpha", "AllBeta", "DynamicResourceAllocation", "ContextualLogging"} <= set(known)
    assert len(known) > 150
    locked = known["DynamicResourceAllocation"]
    assert locked is (True if minor >= 35 else None)


def test_gates_are_parsed_in_all_forms_and_the_last_one_counts() -> None:
    assert parse_gates(["A=true,kube:B=false", " C=T ,", "A=false"]) == {
        "A": False,
        "B": False,
        "C": True,
    }


@pytest.mark.parametrize(
    ("minor", "explicit", "expected"),
    [
        (33, {}, False),
        (34, {}, True),
        (34, {"DynamicResourceAllocation": False}, False),
        (33, {"AllBeta": True}, True),
        (37, {}, True),
        (38, {}, None),
        (99, {}, None),
    ],
)
def test_whether_a_gate_is_on(minor: int, explicit: dict[str, bool], expected: bool | None) -> None:
    assert Gates(Version(1, minor), explicit).enabled("DynamicResourceAllocation") is expected


@pytest.mark.parametrize(
    ("flags", "names"),
    [
        ({"leader-elect-lease-duration": ["10s"]}, ["leader-elect-lease-duration"]),
        ({"leader-elect-renew-deadline": ["20s"]}, ["leader-elect-renew-deadline"]),
        ({"leader-elect-retry-period": ["9s"]}, ["leader-elect-retry-period"]),
        ({"leader-elect-resource-lock": ["endpoints"]}, ["leader-elect-resource-lock"]),
        ({"leader-elect-lease-duration": ["10s"], "leader-elect": ["false"]}, []),
        ({"leader-elect-lease-duration": ["10s"], "config": ["/s.yaml"]}, []),
        ({"leader-elect-lease-duration": ["60s"], "leader-elect-renew-deadline": ["40s"]}, []),
    ],
)
def test_timings_with_which_leader_election_does_not_start(
    flags: dict[str, list[str]], names: list[str]
) -> None:
    assert [problem.path[0] for problem in validate_flags(flags, V135)] == names


def test_a_flag_and_its_value_without_an_equals_sign_are_written_with_one() -> None:
    (message,) = messages("config /s.yaml", "")
    assert message.endswith("write config=/s.yaml")


@pytest.mark.parametrize("component", ["component", "apiserver"])
def test_kube_scheduler_registers_the_gates_of_one_component(component: str) -> None:
    """1.34.4, 1.35.4 and 1.37.2 exit with "component not registered", and accept an empty one."""
    with pytest.raises(ValueError, match=f'no component "{component}".*write AllAlpha=false'):
        parse_gates([f"{component}:AllAlpha=false"])
    assert parse_gates([":A=true", "kube :B=true"]) == {"A": True, "B": True}
    assert parse_gates(["kube:x:A=true"]) == {"x:A": True}, "which no version has"
