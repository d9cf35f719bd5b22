"""The pods that the operator writes: jinja2 templates in, plain dicts out.

Every value goes through `tojson` in the templates, so no value can change the shape of an object.
The same input always gives the same object: nothing here looks at a clock or at the cluster.
"""

from __future__ import annotations

import hashlib
import json
import posixpath
import re
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Final

import jinja2
import yaml

from ..base import assets, names
from ..programs.node.manifest import PLACEHOLDER
from ..schedulerconfig.command_line import CONFIG_PATH

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..base.platform import Platform

CONFIG_DIRECTORY: Final = CONFIG_PATH.removesuffix(f"/{names.CONFIG_KEY}")
STATIC_POD_RESOURCES: Final = CONFIG_DIRECTORY.removesuffix(f"/configmaps/{names.CONFIG}")
"""Where a scheduler sees its revision's own directory, on every platform."""

_LABEL_LIMIT: Final = 63
_NAME_LIMIT: Final = 253

_ESCAPE: Final = re.compile(r"\\(?:u(d[89ab]..)\\u(d[c-f]..)|.)", re.DOTALL)

# libyaml's loader where it is built in: the same result, ten times as fast.
_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@dataclass(frozen=True, slots=True)
class InstallerSettings:
    """How patient an installer is and how much it says.

    Attributes:
        health_timeout: seconds until a new scheduler must be ready.
        settling_time: seconds that it must then stay ready without a restart.
        log_level: klog verbosity of the installer.
        rollback: whether an older revision may replace a newer one.
        go_ahead: whether it may swap as soon as it can.
        keep: revisions whose directories stay on the node.
    """

    health_timeout: float = 60.0
    settling_time: float = 2.0
    log_level: int = 2
    rollback: bool = False
    go_ahead: bool = False
    keep: tuple[int, ...] = ()


def render_static_pod(
    platform: Platform,
    image: str,
    arguments: Sequence[str],
    probe: tuple[str, int],
    *,
    content_hash: str = "",
) -> dict[str, Any]:
    """The scheduler's static pod, with `REVISION` in the places of a revision number.

    Args:
        platform: where things are.
        image: the operand's image.
        arguments: all flags as `--name=value`, `--config` included (CONFIG_PATH).
        probe: host and port where the scheduler answers health probes.
        content_hash: put into the annotation kube-scheduler-operator.dev/content-hash if given.
    """
    host, port = probe
    return _render(
        "kube-scheduler-pod.yaml.j2",
        platform=platform,
        image=image,
        arguments=list(arguments),
        probe_host=host,
        probe_port=port,
        content_hash=content_hash,
        content_hash_annotation=names.CONTENT_HASH_ANNOTATION,
        operand=names.OPERAND,
        placeholder=PLACEHOLDER,
        revision_label=names.REVISION_LABEL,
        static_pod_resources=STATIC_POD_RESOURCES,
    )


def render_installer_pod(
    platform: Platform,
    node: str,
    revision: int,
    retry: int,
    operand_image: str,
    operator_image: str,
    arguments: Sequence[str],
    owner_uid: str,
    settings: InstallerSettings = InstallerSettings(),
    *,
    content_hash: str = "",
) -> dict[str, Any]:
    """The pod that checks revision `revision` and puts it on `node`.

    Args:
        platform: where things are.
        node: the node, which the pod names itself: no scheduler is needed to start it.
        revision: the revision; its ConfigMaps `config-N` and `kube-scheduler-pod-N` must exist.
        retry: 0 for the first attempt; each further one may touch the node again.
        operand_image: the scheduler's image, for the preflight.
        operator_image: our own image.
        arguments: the scheduler's flags, exactly those of the static pod.
        owner_uid: `metadata.uid` of the ConfigMap `revision-status-N`.
        settings: time-outs and verbosity.
        content_hash: hash of the revision's content, for the static pod's annotation.
    """
    return _render(
        "installer-pod.yaml.j2",
        platform=platform,
        node=node,
        node_label_value=label_value(node),
        pod_name=installer_pod_name(node, revision, retry),
        revision=revision,
        retry=retry,
        operand_image=operand_image,
        operator_image=operator_image,
        arguments=list(arguments),
        owner_uid=owner_uid,
        settings=settings,
        content_hash=content_hash,
        preflight_arguments=_preflight_arguments(platform),
        configmaps=[part for part in platform.parts if part != names.POD],
        secrets=_secrets(platform),
        host_directory=_host_directory(platform),
        config_directory=CONFIG_DIRECTORY,
        names=names,
    )


def render_restore_pod(
    platform: Platform,
    node: str,
    retry: int,
    operator_image: str,
    settings: InstallerSettings = InstallerSettings(),
) -> dict[str, Any]:
    """The pod that brings back what was on `node` before the operator.

    Args:
        platform: where things are.
        node: the node, which the pod names itself.
        retry: 0 for the first attempt.
        operator_image: our own image.
        settings: time-outs and verbosity.
    """
    return _render(
        "restore-pod.yaml.j2",
        platform=platform,
        node=node,
        node_label_value=label_value(node),
        pod_name=restore_pod_name(node, retry),
        retry=retry,
        operator_image=operator_image,
        settings=settings,
        host_directory=_host_directory(platform),
        names=names,
    )


def render_guard_pod(
    platform: Platform,
    node: str,
    operator_image: str,
    probe: Mapping[str, Any],
    *,
    known: str,
    owner_uid: str,
) -> dict[str, Any]:
    """The pod that stands for the scheduler of `node`.

    Args:
        platform: where things are.
        node: the node, which the pod names itself.
        operator_image: our own image.
        probe: `httpGet` of the scheduler's own readiness probe.
        known: fingerprint of the kubeconfig that the scheduler was started with; may be empty.
        owner_uid: `metadata.uid` of the KubeScheduler.
    """
    return _render(
        "guard-pod.yaml.j2",
        platform=platform,
        node=node,
        node_label_value=label_value(node),
        pod_name=guard_pod_name(platform, node),
        operator_image=operator_image,
        probe=dict(probe),
        known=known,
        owner_uid=owner_uid,
        # A kubeconfig that belongs to the revision does not change by itself.
        kubeconfig_directory=""
        if platform.credentials
        else posixpath.dirname(platform.scheduler_kubeconfig),
        names=names,
    )


def render_documents(template: str, **values: Any) -> list[dict[str, Any]]:
    """The objects of a template that is given as text; empty documents are left out.

    Raises:
        jinja2.TemplateError: it is no template, or names a value that there is not.
        yaml.YAMLError: what comes out is no YAML.
        ValueError: what comes out is no object.
    """
    text = _environment().from_string(template).render(**values)
    documents = [one for one in yaml.load_all(text, Loader=_Loader) if one is not None]
    for document in documents:
        if not isinstance(document, dict):
            raise ValueError(f"{type(document).__name__} where an object belongs")
    return documents


def render_file(template: str, **values: Any) -> list[dict[str, Any]]:
    """The objects of one of our own templates; empty documents are left out."""
    text = _environment().get_template(template).render(**values)
    return [one for one in yaml.load_all(text, Loader=_Loader) if one is not None]


def guard_pod_name(platform: Platform, node: str) -> str:
    """`STATIC-POD-guard-NODE`; long node names end in a hash."""
    prefix = f"{platform.static_pod_name}-{names.GUARD}-"
    return prefix + _fitted(node, _NAME_LIMIT - len(prefix))


def restore_pod_name(node: str, retry: int) -> str:
    """`restore-NODE`, or `restore-retry-K-NODE`; long node names end in a hash."""
    prefix = f"{names.RESTORE}-retry-{retry}-" if retry else f"{names.RESTORE}-"
    return prefix + _fitted(node, _NAME_LIMIT - len(prefix))


def _preflight_arguments(platform: Platform) -> list[str]:
    """What the preflight adds to the scheduler's own flags; the last one counts."""
    added = ["--write-config-to=/preflight/effective-config.yaml", "--secure-port=0"]
    if platform.credentials:
        # It serves nobody, so it does without the certificate that we give to schedulers. Elsewhere
        # a certificate is one that a user names in overrides, and it must be there.
        added += ["--tls-cert-file=", "--tls-private-key-file="]
    return added


def _secrets(platform: Platform) -> list[tuple[str, bool]]:
    """The Secrets that a scheduler needs on its node, and whether it can do without."""
    kept = platform.credentials
    return [(kept.client_certificate, False), (kept.serving_certificate, True)] if kept else []


def _host_directory(platform: Platform) -> str:
    """The directory of a node in which manifests and revisions are."""
    return posixpath.commonpath([platform.manifest_dir, platform.resource_dir])


def installer_pod_name(node: str, revision: int, retry: int) -> str:
    """`installer-N-NODE`, or `installer-N-retry-K-NODE`; long node names end in a hash."""
    attempt = f"-retry-{retry}" if retry else ""
    prefix = f"{names.INSTALLER}-{revision}{attempt}-"
    return prefix + _fitted(node, _NAME_LIMIT - len(prefix))


def label_value(node: str) -> str:
    """The name of `node` as a label value, which may have 63 characters where names have 253."""
    return _fitted(node, _LABEL_LIMIT)


def stub_kubeconfig() -> str:
    """A kubeconfig for the preflight: complete, so that it parses, and of nobody.

    With `--write-config-to` the scheduler builds its clients and dials nothing.
    """
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "preflight", "cluster": {"server": "https://127.0.0.1:1"}}],
        "users": [{"name": "preflight", "user": {}}],
        "contexts": [
            {"name": "preflight", "context": {"cluster": "preflight", "user": "preflight"}}
        ],
        "current-context": "preflight",
    }
    return canonical_json(document)


def canonical_json(document: Any) -> str:
    """The one text of a JSON document: compact, keys sorted, a newline at the end."""
    return json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False) + "\n"


def _fitted(name: str, limit: int) -> str:
    if len(name) <= limit:
        return name
    digest = hashlib.sha256(name.encode()).hexdigest()[:10]
    return f"{name[: limit - len(digest) - 1].rstrip('-.')}-{digest}"


def _yaml_string(value: Any, **options: Any) -> str:
    """JSON that YAML reads the same: characters beyond U+FFFF as one escape, not as two halves."""
    text = json.dumps(value, **options)
    return _ESCAPE.sub(_whole_character, text)


def _whole_character(escape: re.Match[str]) -> str:
    if escape[1] is None:
        return escape[0]
    high, low = int(escape[1], 16), int(escape[2], 16)
    return f"\\U{0x10000 + ((high & 0x3FF) << 10) + (low & 0x3FF):08x}"


@cache
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(lambda name: assets.text("templates", name)),
        undefined=jinja2.StrictUndefined,
        autoescape=False,  # noqa: S701 - YAML, and every value passes tojson
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.policies["json.dumps_function"] = _yaml_string
    return environment


def _render(template: str, **values: Any) -> dict[str, Any]:
    text = _environment().get_template(template).render(**values)
    document = yaml.load(text, Loader=_Loader)  # noqa: S506 - a safe loader
    result: dict[str, Any] = json.loads(canonical_json(document))
    return result
