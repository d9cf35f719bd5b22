"""What k3s and RKE2 share: kube-scheduler-arg in a drop-in file, and the configuration file.

Both read /etc/rancher/NAME/config.yaml, then config.yaml.d/*.yaml by name; a key with `+` adds to
the list of the files before, and every later file needs the `+` as well. Sources: k3s-io/docs at
147c369, docs/installation/configuration.md; rancher/rke2-docs at 9477b7b (2026-08-20),
docs/install/configuration.md. kube-scheduler's kubeconfig: server/cred/scheduler.kubeconfig below
the data directory (KubeConfigScheduler in k3s' pkg/daemons/control/deps).
"""

from __future__ import annotations

from collections.abc import Collection

from .desired import Desired
from .provider_format import ProviderFile


def rancher_files(
    desired: Desired,
    name: str,
    service: str,
    left_out: Collection[str] = (),
    mounts: Collection[str] = (),
) -> tuple[ProviderFile, ProviderFile]:
    """The configuration file and the drop-in file, for all server nodes, in this order.

    `mounts` has the files of the node that RKE2 must mount.
    """
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
