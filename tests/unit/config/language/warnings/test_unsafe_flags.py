"""Flags that no object may set."""

from __future__ import annotations

import pytest

from kube_scheduler_operator.config.language.warnings.unsafe_flags import TRUSTING, unsafe_flags

FILE = "/etc/kubernetes/scheduler.conf"


@pytest.mark.parametrize(
    ("flag", "value", "message"),
    [
        ("authorization-always-allow-paths", "/*", "would be served without authorization"),
        ("authorization-always-allow-paths", "/healthz,/debug/*", '"/debug/*" would be served'),
        ("authorization-always-allow-paths", "/configz", "would be served without authorization"),
        ("authorization-always-allow-paths", "/metrics/*", '"/metrics/*" would be served'),
        ("authorization-always-allow-paths", "/healthz*", '"/healthz*" would be served'),
        ("authentication-skip-lookup", "true", "the cluster decides whom the scheduler trusts"),
        ("authentication-skip-lookup", "1", "the cluster decides whom the scheduler trusts"),
        ("master", "https://evil.example", "would send its credentials"),
        ("master", "https://localhost@evil.example", "would send its credentials"),
        ("master", "https://localhost.evil.example", "would send its credentials"),
        ("master", "http://localhost:6443", "would send its credentials"),
        ("master", "", "would send its credentials"),
        ("client-ca-file", "/etc/kubernetes/x", "the cluster decides whom the scheduler trusts"),
        ("requestheader-username-headers", "X", "the cluster decides"),
        ("authentication-kubeconfig", "/tmp/x", f"this must stay {FILE}"),
        ("authorization-kubeconfig", "/tmp/x", f"this must stay {FILE}"),
        ("vmodule", "a=1\n--master=x", "line break or control character"),
        ("vmodule", "a=1\x00", "line break or control character"),
        ("log-flush-frequency", "5s\r", "line break or control character"),
        ("v", "2\x7f", "line break or control character"),
    ],
)
def test_an_unsafe_flag_is_reported_with_its_reason(flag: str, value: str, message: str) -> None:
    (found,) = unsafe_flags({flag: [value]}, FILE)
    assert found.path == (flag,)
    assert message in found.sentence
    assert "; " in found.sentence, "it has a fix"


@pytest.mark.parametrize(
    ("flag", "value"),
    [
        ("authorization-always-allow-paths", "/healthz,/livez,/readyz,/metrics"),
        ("authorization-always-allow-paths", ""),
        ("master", "https://localhost:6443"),
        ("master", "https://[::1]:6443/"),
        ("authentication-skip-lookup", "false"),
        ("authentication-skip-lookup", "not a boolean"),
        ("authentication-kubeconfig", FILE),
        ("authentication-tolerate-lookup-failure", "false"),
        ("bind-address", "0.0.0.0"),
        ("tls-min-version", "VersionTLS13"),
        ("vmodule", "schedule_one=10,eventhandlers=4"),
    ],
)
def test_other_flags_and_values_pass(flag: str, value: str) -> None:
    assert list(unsafe_flags({flag: [value]}, FILE)) == []


def test_an_override_that_removes_a_flag_passes() -> None:
    assert list(unsafe_flags({name: [] for name in TRUSTING}, FILE)) == []


def test_every_occurrence_of_a_flag_counts() -> None:
    found = list(unsafe_flags({"authorization-always-allow-paths": ["/healthz", "/*"]}))
    assert len(found) == 1
