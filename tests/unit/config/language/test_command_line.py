"""The command line: order, ownership, and where the result can be probed."""

from __future__ import annotations

import pytest

from kube_scheduler_operator.base.platform import KUBEADM
from kube_scheduler_operator.config.language.command_line import (
    CONFIG_PATH,
    Flags,
    compose_arguments,
    parse,
    probe_target,
    render,
)

KUBECONFIG = KUBEADM.scheduler_kubeconfig
FIRST = (
    f"--config={CONFIG_PATH}",
    f"--authentication-kubeconfig={KUBECONFIG}",
    f"--authorization-kubeconfig={KUBECONFIG}",
)


def arguments(
    *,
    log_level: int = 2,
    observed: Flags | None = None,
    bind_address: str = "",
    serving: Flags | None = None,
    overrides: Flags | None = None,
) -> tuple[str, ...]:
    return render(
        compose_arguments(
            KUBEADM,
            log_level=log_level,
            observed=observed or {},
            bind_address=bind_address,
            serving=serving or {},
            overrides=overrides or {},
        )
    )


def test_bind_address_precedence_is_between_observed_flags_and_overrides() -> None:
    found = {"bind-address": ["10.0.0.5"]}
    listening = arguments(observed=found, bind_address="0.0.0.0")
    assert listening == (*FIRST, "--bind-address=0.0.0.0", "-v=2")
    overridden = arguments(bind_address="0.0.0.0", overrides={"bind-address": ["::1"]})
    assert overridden == (*FIRST, "-v=2", "--bind-address=::1")


def test_the_order_of_the_command_line() -> None:
    assert arguments(
        log_level=4,
        observed={
            "vmodule": ["a=1"],
            "cert-dir": ["/x"],
            "feature-gates": ["A=true", "B=false"],
            "tls-min-version": ["VersionTLS12"],
        },
        serving={"tls-cipher-suites": ["X"], "tls-min-version": ["VersionTLS13"]},
        overrides={"z": ["1"], "master": ["https://a", "https://b"]},
    ) == (
        *FIRST,
        "--bind-address=127.0.0.1",
        "--cert-dir=/x",
        "--vmodule=a=1",
        "--feature-gates=A=true,B=false",
        "-v=4",
        "--tls-cipher-suites=X",
        "--tls-min-version=VersionTLS13",
        "--master=https://a",
        "--master=https://b",
        "-z=1",
    )


def test_platform_defaults_apply_if_nothing_is_set() -> None:
    assert arguments() == (*FIRST, "--bind-address=127.0.0.1", "-v=2")


def test_observed_flags_replace_defaults_in_place() -> None:
    found = arguments(observed={"bind-address": ["0.0.0.0"]})
    assert found == (*FIRST, "--bind-address=0.0.0.0", "-v=2")


@pytest.mark.parametrize(
    ("overrides", "tail"),
    [
        ({"bind-address": ["::"]}, ("-v=2", "--bind-address=::")),
        ({"v": ["8"]}, ("--bind-address=127.0.0.1", "-v=8")),
        ({"bind-address": []}, ("-v=2",)),
        ({"tls-min-version": ["VersionTLS13"]}, ("-v=2", "--tls-min-version=VersionTLS13")),
    ],
)
def test_an_override_replaces_a_flag_instead_of_repeating_it(
    overrides: Flags, tail: tuple[str, ...]
) -> None:
    serving = {"tls-min-version": ["VersionTLS12"]} if "tls-min-version" in overrides else {}
    found = arguments(serving=serving, overrides=overrides)
    assert found[-len(tail) :] == tail
    names = [word.lstrip("-").partition("=")[0] for word in found]
    assert len(names) == len(set(names))


@pytest.mark.parametrize(
    ("line", "flags"),
    [
        (["kube-scheduler", "--a=1", "--b", "2"], {"a": ["1"], "b": ["2"]}),
        (["--leader-elect", "--x=1"], {"leader-elect": ["true"], "x": ["1"]}),
        (["-v=2", "-v", "3"], {"v": ["2", "3"]}),
        (["--bind_address=::1"], {"bind-address": ["::1"]}),
        (["--x=a=b", "-", "--"], {"x": ["a=b"]}),
        (["--x=", "--last"], {"x": [""]}),
    ],
)
def test_command_lines_are_parsed_like_pflag(line: list[str], flags: Flags) -> None:
    assert parse(line) == flags


def test_composed_arguments_can_be_parsed_back() -> None:
    flags = compose_arguments(
        KUBEADM, log_level=2, observed={}, serving={}, overrides={"x-y": ["a", "b=c", ""]}
    )
    assert parse(render(flags)) == flags


@pytest.mark.parametrize(
    ("line", "target"),
    [
        ((), ("127.0.0.1", 10259)),
        (("--bind-address=0.0.0.0",), ("127.0.0.1", 10259)),
        (("--bind-address=::",), ("127.0.0.1", 10259)),
        (("--bind-address=10.0.0.5", "--secure-port=11259"), ("10.0.0.5", 11259)),
        (("--bind-address", "::1"), ("::1", 10259)),
        (("--secure-port=1", "--secure-port=2"), ("127.0.0.1", 2)),
        (("--secure-port=https",), ("127.0.0.1", 10259)),
    ],
)
def test_where_a_scheduler_is_probed(line: tuple[str, ...], target: tuple[str, int]) -> None:
    assert probe_target(line, KUBEADM) == target
