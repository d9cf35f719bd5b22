"""What the operator's command line chooses."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ...base.platform import Platform
from ...base.recognition import PlatformDecision
from ...base.settings import Settings
from .assignment import WEBHOOK_PORT


@dataclass(frozen=True, slots=True)
class OperatorOptions:
    kubeconfig: str | None  # path; None: the first of $KUBECONFIG, in-cluster and ~/.kube/config
    platform: Platform
    settings: Settings
    decision: PlatformDecision | None = (
        None  # None if `--platform` names a platform with static pods
    )
    chosen: Platform | None = None  # the platform that `--platform` names; None if it was detected
    host: str = "0.0.0.0"  # of the HTTPS server
    port: int = 8443  # of the HTTPS server; 0 lets the system choose
    tls_cert_file: Path | None = None  # serving certificate; None: a self-signed one
    tls_key_file: Path | None = None
    webhook: tuple[str, int] = ("0.0.0.0", WEBHOOK_PORT)  # for `spec.assign`
    # whether the Pods that the operator creates have the image of its Deployment, if it has one
    follows_deployment: bool = False
