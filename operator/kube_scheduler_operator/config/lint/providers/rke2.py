"""RKE2: kube-scheduler-arg, and the file that it names.

kube-scheduler is a static Pod. RKE2 mounts every existing file that a flag names by its absolute
path (ReadFiles in rancher/rke2 at 6ce1a80, v1.36, pkg/podtemplate/podtemplate.go), so the
configuration file needs no kube-scheduler-extra-mount, only files that it names do; each must exist
before RKE2 starts.
"""

from __future__ import annotations

from ...language.versions import Version
from .desired import Desired, named_files, without_agents
from .provider_format import ProviderOutput
from .rancher import rancher_files
from .unsupported import unsupported_agents


def write(desired: Desired, _: Version | None) -> ProviderOutput:
    """Write the drop-in file and the configuration file."""
    called = without_agents(desired)
    by_flags = {value for values in desired.flags.values() for value in values}
    mounts = [path for path in named_files(called) if path not in by_flags]
    files = rancher_files(called, "rke2", "rke2-server", mounts=mounts)
    return ProviderOutput(files, tuple(unsupported_agents(desired)))
