"""`kube-scheduler-operator operator`: the operator, in a cluster or locally."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING

from ...base import names
from ...kube.errors import KubeError
from ..console.flags import add_platform_flag
from ..console.output import print_remark

if TYPE_CHECKING:
    from ...base.recognition import PlatformDecision


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subparsers.add_parser(
        "operator",
        description="Runs the operator: in a cluster with its ServiceAccount, or out of cluster "
        "with a kubeconfig. Replicas elect a leader (Lease). SIGTERM shuts it down gracefully.",
    )
    parser.add_argument(
        "--kubeconfig", help="default: $KUBECONFIG, then in-cluster, then ~/.kube/config"
    )
    add_platform_flag(parser)
    parser.add_argument(
        "--operator-image",
        default=os.environ.get("OPERATOR_IMAGE", ""),
        help="image of the Pods that the operator creates: this program (default: $OPERATOR_IMAGE, "
        "then that of the operator's Deployment)",
    )
    parser.add_argument(
        "--operand-image",
        default=_environment("OPERAND_IMAGE", "IMAGE"),
        help="image of kube-scheduler (default: $OPERAND_IMAGE or $IMAGE, then that of the "
        "cluster)",
    )
    parser.add_argument(
        "--operand-repository",
        default=os.environ.get("OPERAND_REPOSITORY", ""),
        metavar="REPOSITORY",
        help="platform managed: repository of kube-scheduler, without tag, such as a mirror; the "
        "tag is the API server's version (default: $OPERAND_REPOSITORY, then "
        "registry.k8s.io/kube-scheduler)",
    )
    parser.add_argument(
        "--managed-scheduler",
        default=os.environ.get("MANAGED_SCHEDULER", ""),
        metavar="NAME",
        help="platform managed: name of the SecondaryScheduler that has the settings of Scheduler "
        "and KubeScheduler (default: $MANAGED_SCHEDULER, then managed-scheduler)",
    )
    parser.add_argument(
        "--upgrade-delay",
        type=_seconds,
        default=600.0,
        metavar="SECONDS",
        help="platform managed: time for which all API servers must be newer before schedulers "
        "follow (default: 600)",
    )
    parser.add_argument(
        "--image-pull-secrets",
        default=os.environ.get("IMAGE_PULL_SECRETS", ""),
        metavar="NAME,...",
        help="image pull Secrets of pods on nodes (default: $IMAGE_PULL_SECRETS)",
    )
    parser.add_argument(
        "--release-version",
        default=_environment("RELEASE_VERSION", "OPERATOR_IMAGE_VERSION"),
        help="version of the OpenShift release of this operator (default: $RELEASE_VERSION or "
        "$OPERATOR_IMAGE_VERSION)",
    )
    parser.add_argument(
        "--operand-version",
        default=_environment("OPERAND_IMAGE_VERSION"),
        help="kube-scheduler's version in that release, for ClusterOperator (default: "
        "$OPERAND_IMAGE_VERSION, then that of the image)",
    )
    parser.add_argument(
        "--secondary-namespaces",
        default=os.environ.get("SECONDARY_NAMESPACES", ""),
        metavar="NAME,...",
        help="namespaces in which SecondarySchedulers may run (default: $SECONDARY_NAMESPACES, "
        'then the target namespace; "-": none)',
    )
    parser.add_argument(
        "--allowed-images",
        default=os.environ.get("ALLOWED_IMAGES", ""),
        metavar="IMAGE,...",
        help="images that SecondarySchedulers and SchedulerExtenders may name, in addition to "
        "those of kube-scheduler and the operator: repositories, or prefixes that end with /* "
        "(default: $ALLOWED_IMAGES)",
    )
    parser.add_argument(
        "--pending-pods-interval",
        type=_seconds,
        default=60.0,
        metavar="SECONDS",
        help="interval between checks for waiting pods, for those with an unknown schedulerName, "
        "and for unmanaged schedulers; 0 disables them (default: 60)",
    )
    parser.add_argument("--listen", default="0.0.0.0:8443", metavar="HOST:PORT")
    parser.add_argument(
        "--webhook-listen",
        default="0.0.0.0:10250",
        metavar="HOST:PORT",
        help="address of the webhook that applies spec.assign, while its "
        "MutatingWebhookConfiguration exists (default: 0.0.0.0:10250, a port of Pods that "
        "firewalls of providers open for the API server)",
    )
    parser.add_argument(
        "--tls-cert-file", type=Path, help="certificate for HTTPS (default: self-signed)"
    )
    parser.add_argument("--tls-private-key-file", type=Path)
    parser.add_argument(
        "--health-timeout",
        type=_seconds,
        default=60.0,
        metavar="SECONDS",
        help="time for a new scheduler to become Ready before the last good revision is restored "
        "(default: 60)",
    )
    parser.add_argument(
        "--settling-time",
        type=_seconds,
        default=2.0,
        metavar="SECONDS",
        help="time that it must then stay Ready without a restart (default: 2)",
    )
    parser.add_argument("--logging-format", choices=("text", "json"), default="text")
    parser.set_defaults(run=run)


def _environment(*variables: str) -> str:
    """Return the first of these variables that is set; the later ones are named as on OpenShift.

    A value that the build of a release payload should have replaced counts as unset.
    """
    values = (os.environ.get(variable, "") for variable in variables)
    return next((value for value in values if value and value not in names.PLACEHOLDERS), "")


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0.0 <= seconds <= 86400.0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds from 0 to 86400")
    return seconds


def _namespaces(text: str) -> tuple[str, ...] | None:
    """Split names at commas; None if empty, and () for a dash, which is not a valid name."""
    if text == "-":
        return ()
    return tuple(dict.fromkeys(filter(None, map(str.strip, text.split(","))))) or None


def run(args: argparse.Namespace) -> int:
    from ...base import klog
    from ...base.images import AllowedImages
    from ...base.platform import PLATFORMS
    from ...base.settings import Rollout, Settings
    from ...config.language.merging.merge import require_jsonmerge
    from ...operator.engine import process
    from ...operator.engine.detect_platform import CHOICES
    from ...operator.engine.options import OperatorOptions
    from ...serving.certificate import CertificateError

    require_jsonmerge()  # the operator never merges with the offline replacement
    klog.configure(json_format=args.logging_format == "json")
    if args.platform not in CHOICES:
        return _usage(f"--platform {args.platform!r} is unknown; use {', '.join(CHOICES)}")
    listen, webhook = _address(args.listen), _address(args.webhook_listen)
    if listen is None:
        return _usage(f"--listen {args.listen!r} is not HOST:PORT, e.g. 0.0.0.0:8443")
    if webhook is None:
        return _usage(
            f"--webhook-listen {args.webhook_listen!r} is not HOST:PORT, e.g. 0.0.0.0:10250"
        )
    repository = args.operand_repository.rstrip("/")
    if "@" in repository or ":" in repository.rpartition("/")[2]:
        return _usage(
            f'--operand-repository "{repository}" has a tag or digest; remove it, because the '
            "tag is the API server's version, or set --operand-image instead"
        )
    rollout = Rollout(health_timeout=args.health_timeout, settling_time=args.settling_time)
    defaults = Settings()
    settings = Settings(
        operator_image=args.operator_image or defaults.operator_image,
        operand_image=args.operand_image,
        operand_repository=repository or defaults.operand_repository,
        managed_scheduler=args.managed_scheduler or defaults.managed_scheduler,
        upgrade_delay=args.upgrade_delay,
        image_pull_secrets=tuple(filter(None, args.image_pull_secrets.split(","))),
        operator_version=args.release_version or defaults.operator_version,
        operand_version=args.operand_version,
        release_version=args.release_version,
        secondary_namespaces=_namespaces(args.secondary_namespaces),
        allowed_images=AllowedImages().extended_by(args.allowed_images),
        pending_interval=args.pending_pods_interval,
        rollout=rollout,
    )
    try:
        decision = _decide(args.platform, args.kubeconfig)
        platform = decision.platform
        named = platform.owns_static_pods and args.platform == platform.name
        options = OperatorOptions(
            kubeconfig=args.kubeconfig,
            platform=platform,
            settings=settings,
            decision=None if named else decision,
            chosen=PLATFORMS.get(args.platform),
            host=listen[0],
            port=listen[1],
            webhook=webhook,
            follows_deployment=not args.operator_image,
            tls_cert_file=args.tls_cert_file,
            tls_key_file=args.tls_private_key_file,
        )
        return process.run(options)
    except (KubeError, CertificateError, OSError) as error:
        print_remark(f"kube-scheduler-operator: {error}")
        return 1


def _decide(chosen: str, kubeconfig: str | None) -> PlatformDecision:
    """Return the chosen platform, else the recorded one, else the detected one."""
    import asyncio
    import logging

    from ...base import klog
    from ...base.platform import PLATFORMS
    from ...base.recognition import PlatformDecision, Recognition
    from ...kube.client import ApiClient
    from ...kube.credentials import find
    from ...operator.engine.detect_platform import decide_platform

    named = PLATFORMS.get(chosen)
    if named is not None and named.owns_static_pods:
        return PlatformDecision(Recognition(named))

    async def decide() -> PlatformDecision:
        async with ApiClient(find(kubeconfig), field_manager=names.FIELD_MANAGER) as api:
            return await decide_platform(api, named)

    decision = asyncio.run(decide())
    values = {"platform": decision.platform.name}
    if not decision.platform.owns_static_pods:
        values["provider"] = decision.used.provider
    reason = "; ".join(filter(None, (decision.used.reason, *decision.unanswered)))
    log = logging.getLogger(__name__)
    log.info("Detected the platform", extra=klog.kv(**values, reason=reason))
    if decision.disagreement:
        log.warning("%s", decision.disagreement)
    return decision


def _address(text: str) -> tuple[str, int] | None:
    """Split HOST:PORT; None if it is not that."""
    host, _, port = text.rpartition(":")
    if not port.isdecimal() or int(port) > 65535:
        return None
    return host.strip("[]") or "0.0.0.0", int(port)


def _usage(message: str) -> int:
    print_remark(f"kube-scheduler-operator operator: {message}")
    return 2
