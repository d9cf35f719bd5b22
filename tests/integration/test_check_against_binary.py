"""The operator's validation and kube-scheduler agree on profiles, valid and invalid configurations.

The program is started as the preflight does it: it decodes, defaults, validates, builds every
profile and writes the result, without a cluster and without serving.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from kube_scheduler_operator.base.platform import KUBEADM, Platform
from kube_scheduler_operator.base.templates import canonical_json
from kube_scheduler_operator.config.effective.control_plane.compose import compose
from kube_scheduler_operator.config.language.command_line import parse
from kube_scheduler_operator.config.language.feature_gates import Gates, known_gates, parse_gates
from kube_scheduler_operator.config.language.flags import (
    CIPHER_SUITES,
    VOID_WITH_CONFIG,
    flag_names,
    validate_flags,
    void_flags,
)
from kube_scheduler_operator.config.language.merging.merge import merge_semantically
from kube_scheduler_operator.config.language.merging.presets import PROFILES, default_config
from kube_scheduler_operator.config.language.validation.configuration import Target, validate_config
from kube_scheduler_operator.config.language.versions import Version
from kube_scheduler_operator.operator.controlplane.node_pods import stub_kubeconfig

from ..configurations.by_hand import BAD, GOOD, OTHERWISE, args
from ..control_plane_inputs import inputs_of

pytestmark = [pytest.mark.presubmit, pytest.mark.core]

OF_ANOTHER_PROGRAM = {"ControllerManagerReleaseLeaderElectionLockOnExit"}
"""Gates of kube-controller-manager 1.36, which is the same file as kube-scheduler if built here."""

FLAGS: dict[str, tuple[str, ...]] = {
    "flag of a newer version": ("--min-compatibility-version=1.35",),
    "flag of the newest version": ("--tls-curve-preferences=29,23",),
    "gate": ("--feature-gates=StorageCapacityScoring=true",),
    "gate of the component": ("--feature-gates=kube:AllAlpha=false",),
    "unknown gate": ("--feature-gates=NoSuchThing=true",),
    "locked gate": ("--feature-gates=DynamicResourceAllocation=false",),
    "gate without value": ("--feature-gates=AllAlpha",),
    "gate with another value": ("--feature-gates=AllAlpha=maybe",),
    "unknown flag": ("--no-such-flag=1",),
    "underscore": ("--bind_address=127.0.0.1",),
    "address": ("--bind-address=localhost",),
    "blank address": ("--bind-address=",),
    "verbosity": ("-v=two",),
    "negative verbosity": ("-v=-1",),
    "duration": ("--log-flush-frequency=5",),
    "boolean": ("--profiling=yes",),
    "integer": ("--kube-api-burst=1.5",),
    "lease by flag": ("--leader-elect-lease-duration=5s",),
    "quoted boolean": ("--profiling='false'",),
    "levels of files": ("--vmodule=schedule_one=5,cache*=4",),
    "a file without its level": ("--vmodule=scheduler",),
    "format of logs": ("--logging-format=json",),
    "unknown format of logs": ("--logging-format=xml",),
    "labels of a metric": ("--allow-metric-labels=scheduler_pods,result=ok",),
    "labels without values": ("--allow-metric-labels=x",),
    "a certificate for names, without a key": ("--tls-sni-cert-key=/a",),
    "metrics that a much older minor hid": ("--show-hidden-metrics-for-version=1.20",),
}

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def platform(tmp_path: Path) -> Platform:
    """A kubeadm cluster whose kubeconfig is a stub, as the preflight mounts one."""
    kubeconfig = tmp_path / "scheduler.conf"
    kubeconfig.write_text(stub_kubeconfig(), encoding="utf-8")
    return replace(KUBEADM, scheduler_kubeconfig=str(kubeconfig))


@pytest.fixture
def run(kube_scheduler_binary: Path, tmp_path: Path) -> Run:
    def start(config: Any, *arguments: str) -> subprocess.CompletedProcess[str]:
        file = tmp_path / "config.yaml"
        file.write_text(canonical_json(config), encoding="utf-8")
        last = (f"--write-config-to={tmp_path / 'out.yaml'}", "--secure-port=0")
        return subprocess.run(
            [str(kube_scheduler_binary), *arguments, f"--config={file}", *last],
            capture_output=True,
            text=True,
            timeout=50,
            check=False,
        )

    return start


@pytest.fixture
def version(kube_scheduler_binary: Path) -> Version:
    command = [str(kube_scheduler_binary), "--version"]
    return Version.parse(subprocess.check_output(command, text=True, timeout=50).split()[-1])


@pytest.fixture
def helped(kube_scheduler_binary: Path) -> str:
    command = [str(kube_scheduler_binary), "--help"]
    return subprocess.check_output(command, text=True, timeout=50)


def problems(config: Any, version: Version, *arguments: str) -> list[str]:
    flags = parse(arguments)
    found = list(validate_flags(flags, version))
    explicit = {} if found else parse_gates(flags.get("feature-gates", ()))
    elected = dict(config["leaderElection"])
    if "leader-elect-lease-duration" in flags:
        elected["leaseDuration"] = flags["leader-elect-lease-duration"][-1]
    found += validate_config(config, Target(Gates(version, explicit)), elected)
    return [f"{problem.path}: {problem.message}" for problem in found]


@pytest.mark.parametrize("profile_name", PROFILES)
def test_every_profile_is_accepted_as_composed(
    profile_name: str, run: Run, platform: Platform, version: Version, tmp_path: Path
) -> None:
    composition = compose(inputs_of(platform, version, {"spec": {"profile": profile_name}}, {}))
    assert not composition.blocking
    result = run(composition.config, *composition.arguments)
    assert result.returncode == 0, result.stderr
    assert "leaseDuration: 15s" in (tmp_path / "out.yaml").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", GOOD)
def test_both_accept(name: str, run: Run, platform: Platform, version: Version) -> None:
    config = merge_semantically([default_config(platform), GOOD[name]])
    accepted = version.minor not in OTHERWISE.get(name, ())
    assert (run(config).returncode == 0) == accepted, run(config).stderr
    assert (problems(config, version) == []) == accepted


@pytest.mark.parametrize("name", BAD)
def test_both_reject(name: str, run: Run, platform: Platform, version: Version) -> None:
    config = merge_semantically([default_config(platform), BAD[name]])
    refused = version.minor not in OTHERWISE.get(name, ())
    assert (problems(config, version) != []) == refused
    assert (run(config).returncode != 0) == refused


@pytest.mark.parametrize("name", FLAGS)
def test_both_validate_flags_equally(
    name: str, run: Run, platform: Platform, version: Version
) -> None:
    config = default_config(platform)
    result = run(config, *FLAGS[name])
    found = problems(config, version, *FLAGS[name])
    assert (found == []) == (result.returncode == 0), (found, result.stderr)


VOID = {
    "contention-profiling": "true", "kube-api-burst": "7", "kube-api-content-type": "x/y",
    "kube-api-qps": "7", "profiling": "true",
}  # fmt: skip


@pytest.mark.parametrize("flag", VOID_WITH_CONFIG)
def test_a_flag_reported_as_void_has_no_effect_with_a_file(
    flag: str, run: Run, platform: Platform, tmp_path: Path
) -> None:
    config = default_config(platform)
    completed = []
    for flags in ((), (f"--{flag}={VOID[flag]}",)):
        done = run(config, *flags)
        assert done.returncode == 0, done.stderr
        completed.append(yaml.safe_load((tmp_path / "out.yaml").read_text()))
    assert completed[0] == completed[1]
    ours = {each.path for each in void_flags(VOID, "spec")}
    assert (flag,) in ours
    value: Any = completed[0]
    for key in VOID_WITH_CONFIG[flag].split("."):
        value = value[key]  # the field that counts instead exists


def test_gated_arguments_pass_with_their_gate(
    run: Run, platform: Platform, version: Version
) -> None:
    shape = args("VolumeBinding", shape=[{"utilization": 0, "score": 0}])
    config = merge_semantically([default_config(platform), shape])
    gate = "--feature-gates=StorageCapacityScoring=true"
    assert run(config, gate).returncode == 0
    assert problems(config, version, gate) == []


@pytest.mark.presubmit
def test_the_recorded_feature_gates_equal_kube_schedulers(
    run: Run, platform: Platform, version: Version, helped: str
) -> None:
    known = known_gates(version.minor)
    assert known is not None
    alone = ("AllAlpha", "AllBeta")
    for value in (True, False):
        everything = ",".join(
            f"{name}={str(value if locked is None else locked).lower()}"
            for name, locked in known.items()
            if name not in alone
        )
        result = run(default_config(platform), f"--feature-gates={everything}")
        assert result.returncode == 0, result.stderr
    listed = set(re.findall(r"kube:(\w+)=true\|false", helped))
    assert listed
    assert listed - OF_ANOTHER_PROGRAM <= set(known)


@pytest.mark.presubmit
def test_the_recorded_flags_equal_kube_schedulers(helped: str, version: Version) -> None:
    listed = set(re.findall(r"^\s+(?:-\w, )?--([\w-]+)", helped, re.MULTILINE))
    assert listed == flag_names(version.minor)


@pytest.mark.presubmit
def test_the_recorded_cipher_suites_equal_kube_schedulers(helped: str) -> None:
    assert set(re.findall(r"\bTLS_\w+", helped)) == CIPHER_SUITES
