"""k3s: kube-scheduler-arg, and the file that it names.

kube-scheduler is a part of k3s' process, in which components must agree on the verbosity: k3s sets
logsapi.ReapplyHandlingIgnoreUnchanged (pkg/daemons/agent), so that a component with another `v`
ends with an error (k8s.io/component-base 0.36.3, logs/api/v1/options.go). k3s passes
--leader-elect=false where one server is enough, which wins over the file (pkg/daemons/control).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ...language.versions import Version
from .desired import Desired, without_agents
from .provider_format import ProviderFinding, ProviderOutput
from .rancher import rancher_files
from .unsupported import unsupported_agents

VERBOSITY: Final = "v"


def write(desired: Desired, _: Version | None) -> ProviderOutput:
    """Write the drop-in file and the configuration file."""
    findings = (*unsupported_agents(desired), *_verbosity(desired))
    return ProviderOutput(
        rancher_files(without_agents(desired), "k3s", "k3s", (VERBOSITY,)), findings
    )


def _verbosity(desired: Desired) -> Iterator[ProviderFinding]:
    if VERBOSITY in desired.flags:
        (value, *_) = desired.flags[VERBOSITY]
        yield ProviderFinding(
            "FlagNotSupported",
            desired.flag(VERBOSITY),
            "kube-scheduler is a part of k3s' process, which has one verbosity",
            f"remove it, and set `v: {value}` in k3s' config.yaml for all components",
        )
