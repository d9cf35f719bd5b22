"""k3s and RKE2: kube-scheduler-arg in a drop-in file, and the configuration file that it names.

Both read /etc/rancher/NAME/config.yaml, then config.yaml.d/*.yaml by name; a key with `+` adds to
the list of the files before, and every later file needs the `+` as well. Sources: k3s-io/docs at
147c369, docs/installation/configuration.md; rancher/rke2-docs at 9477b7b (2026-08-20),
docs/install/configuration.md. kube-scheduler's kubeconfig: server/cred/scheduler.kubeconfig below
the data directory (KubeConfigScheduler in k3s' pkg/daemons/control/deps).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Final

from ...language.versions import Version
from .desired import Desired, named_files, without_agents
from .provider import ProviderFile, ProviderFinding, ProviderOutput
from .unsupported import unsupported_agents

_VERBOSITY: Final = "v"


def write_k3s(desired: Desired, _: Version | None) -> ProviderOutput:
    """Write both files for k3s, of whose process kube-scheduler is a part.

    Its components must agree on the verbosity: k3s sets logsapi.ReapplyHandlingIgnoreUnchanged
    (pkg/daemons/agent), so that a component with another `v` ends with an error
    (k8s.io/component-base 0.36.3, logs/api/v1/options.go). k3s passes --leader-elect=false where
    one server is enough, which wins over the file (pkg/daemons/control).
    """
    files = _files(without_agents(desired), "k3s", "k3s", left_out=(_VERBOSITY,))
    return ProviderOutput(files, (*unsupported_agents(desired), *_verbosity(desired)))


def _verbosity(desired: Desired) -> Iterator[ProviderFinding]:
    if _VERBOSITY in desired.flags:
        (value, *_) = desired.flags[_VERBOSITY]
        message = "kube-scheduler is a part of k3s' process, which has one verbosity"
        fix = f"remove it, and set `v: {value}` in k3s' config.yaml for all components"
        yield ProviderFinding("FlagNotSupported", desired.flag(_VERBOSITY), message, fix)


def write_rke2(desired: Desired, _: Version | None) -> ProviderOutput:
    """Write both files for RKE2, where kube-scheduler is a static Pod.

    RKE2 mounts every existing file that a flag names by its absolute path (ReadFiles in
    rancher/rke2 at 6ce1a80, v1.36, pkg/podtemplate/podtemplate.go), so the configuration file needs
    no kube-scheduler-extra-mount, only files that it names do; each must exist before RKE2 starts.
    """
    called = without_agents(desired)
    by_flags = {value for values in desired.flags.values() for value in values}
    mounts = [path for path in named_files(called) if path not in by_flags]
    files = _files(called, "rke2", "rke2-server", mounts=mounts)
    return ProviderOutput(files, tuple(unsupported_agents(desired)))


def _files(
    desired: Desired,
    name: str,
    service: str,
    *,
    left_out: Collection[str] = (),
    mounts: Collection[str] = (),
) -> tuple[ProviderFile, ProviderFile]:
    """Return the configuration file and the drop-in file, for all server nodes, in this order."""
    config = f"/etc/rancher/{name}/kube-scheduler.yaml"
    arguments = [f"config={config}"]
    for flag, values in desired.flags.items():
        if flag not in left_out:
            arguments += [f"{flag}={value}" for value in values]
    drop_in = {"kube-scheduler-arg+": arguments}
    if mounts:
        drop_in["kube-scheduler-extra-mount+"] = [f"{path}:{path}:ro" for path in mounts]
    kubeconfig = f"/var/lib/rancher/{name}/server/cred/scheduler.kubeconfig"
    return (
        ProviderFile(config, "first, on every server node", desired.with_kubeconfig(kubeconfig)),
        ProviderFile(
            f"/etc/rancher/{name}/config.yaml.d/kube-scheduler.yaml",
            f"on every server node; then `systemctl restart {service}`, one node at a time",
            drop_in,
        ),
    )
