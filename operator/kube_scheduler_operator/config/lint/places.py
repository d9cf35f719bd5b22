"""The names of `validate --for`, and what they mean for a check."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from ...base.findings import did_you_mean, listing
from ...base.platform import PLATFORMS
from ..language.plugins.known_schedulers import known_scheduler
from ..language.versions import Version
from .checks import CheckOptions
from .forms.volcano import NAME as VOLCANO
from .forms.volcano import OWN_CHECK

UPSTREAM: Final = "upstream"
OPENSHIFT: Final = "openshift"
SCHEDULERS: Final = ("scheduler-plugins", "koordinator")
"""Third-party schedulers that are made of kube-scheduler, whose plugins are on record."""
PROVIDERS: Final = (
    "aks", "eks", "gardener", "k3s", "rke2", "kubeadm", "kubeadm-patches", "talos",
    "cluster-autoscaler", "karpenter",
)  # fmt: skip
"""The names of `compose --for`, which need not be imported for a check."""
_OWN_RELEASES: Final = ("gardener", "talos", "karpenter")
"""Providers whose releases are not those of Kubernetes."""
PLACES: Final = (UPSTREAM, *PROVIDERS, OPENSHIFT, *SCHEDULERS)


def options_for(word: str, options: CheckOptions) -> CheckOptions:
    """Return the options for `NAME[:VERSION]`.

    Raises:
        ValueError: the name is unknown, or the version is not a version.
    """
    name, colon, release = word.partition(":")
    if name == VOLCANO:
        raise ValueError(f"Volcano's configuration is not checked here: {OWN_CHECK}; remove --for")
    if name not in PLACES:
        raise ValueError(f'"{name}" is not {listing(PLACES)}{did_you_mean(name, PLACES)}')
    version = Version.parse(release) if colon else None
    options = replace(options, place=name)
    if name in SCHEDULERS:
        known = known_scheduler(name, release)
        if known is None:  # a test ensures that each name is on record
            return options
        gates = replace(options.gates, version=known.rules)
        return replace(options, gates=gates, stock=False, scheduler=f"{name}:{known.version}")
    if version is not None and name not in _OWN_RELEASES:
        options = replace(options, gates=replace(options.gates, version=version))
    return replace(options, platform=PLATFORMS.get(name, options.platform))
