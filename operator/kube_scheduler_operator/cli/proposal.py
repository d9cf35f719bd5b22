"""What a file would make of a revision, before anybody applies it.

A KubeSchedulerConfiguration is compared as it is. A Scheduler and a KubeScheduler are composed the
way the operator does it; which of them the file does not have, and what the operator observed, is
taken from the cluster.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from . import common
from .compare import Made, gates_of, take_apart
from .validate import shown, text

if TYPE_CHECKING:
    from ..config.compose import Composition
    from ..config.inputs import Inputs
    from ..kube.client import ApiClient
    from ..platform import Platform
    from ..revision.history import Revision


def documents(files: Sequence[str]) -> dict[str, Mapping[str, Any]]:
    """The documents of files, by kind.

    Raises:
        UsageError: a file cannot be read.
        CommandError: it holds something else, or cannot be taken apart.
    """
    from ..config.kinds import KINDS
    from ..config.source import read

    found: dict[str, Mapping[str, Any]] = {}
    known = {kind for _, kind in KINDS}
    for name in files:
        read_, error = read(text(name))
        flaws = [flaw for document in read_ for flaw in document.flaws]
        if error is not None or flaws:
            where = error.position if error is not None else flaws[0].position
            message = error.message if error is not None else flaws[0].message
            raise common.CommandError(f"{shown(name)}:{where.line}:{where.column}: {message}")
        for document in read_:
            value = document.value
            kind = str(value.get("kind")) if isinstance(value, Mapping) else ""
            if kind not in known or kind in found:
                what = f"a second {kind}" if kind in found else kind or "no object"
                raise common.CommandError(
                    f"{shown(name)}: {what}; give a KubeSchedulerConfiguration, or a Scheduler and "
                    "a KubeScheduler"
                )
            found[kind] = value
    return found


async def proposed(
    api: ApiClient,
    platform: Platform,
    given: Mapping[str, Mapping[str, Any]],
    revision: Revision,
) -> tuple[Made, Made]:
    """(what a revision has, what the documents would make of it), of what can be compared.

    Raises:
        CommandError: nothing would be made of them, and why.
    """
    from ..config.schema import KIND
    from ..manifests.target import target_data
    from ..revision.content import Content

    before = take_apart(revision.content)
    if KIND in given:
        if len(given) > 1:
            raise common.CommandError(f"give a {KIND}, or a Scheduler and a KubeScheduler")
        _refuse_bad(given[KIND], before)
        nothing: dict[str, Any] = {"image": "", "arguments": (), "pod": {}, "other": {}}
        return replace(before, **nothing), Made(given[KIND], (), "", {}, {})
    inputs = await _inputs(api, platform, given, before)
    composition = _composed(inputs)
    reason = str(inputs.spec.get("forceRedeploymentReason") or "")
    parts = {**revision.content.parts, **target_data(platform, composition, before.image, reason)}
    return before, take_apart(Content(parts))


def _refuse_bad(config: Mapping[str, Any], before: Made) -> None:
    from ..config.check import Target, check_config
    from ..config.findings import format_path

    for problem in check_config(config, Target(gates_of(before))):
        path = format_path(problem.path)
        raise common.CommandError(
            f"kube-scheduler would not start with it: {path}: {problem.message}; `validate` has all"
        )


async def _inputs(
    api: ApiClient, platform: Platform, given: Mapping[str, Mapping[str, Any]], before: Made
) -> Inputs:
    from .. import names
    from ..config.inputs import Inputs
    from ..kube.resource import (
        API_SERVERS,
        FEATURE_GATES,
        INFRASTRUCTURES,
        KUBE_SCHEDULERS,
        SCHEDULERS,
        ObjectRef,
    )

    live = {
        resource.kind: await common.find_one(api, ObjectRef(resource, None, names.CLUSTER))
        for resource in (SCHEDULERS, KUBE_SCHEDULERS)
    }
    others = {
        resource.kind: await common.find_one(api, ObjectRef(resource, None, names.CLUSTER))
        for resource in (API_SERVERS, FEATURE_GATES, INFRASTRUCTURES)
        if platform.cluster_config
    }
    observed = ((live["KubeScheduler"] or {}).get("spec") or {}).get("observedConfig")
    kubescheduler = given.get("KubeScheduler", live["KubeScheduler"] or {})
    spec = {"observedConfig": observed, **(kubescheduler.get("spec") or {})}
    return Inputs(
        platform=platform,
        operand_version=gates_of(before).version,
        scheduler=given.get("Scheduler", live["Scheduler"]),
        kubescheduler={**kubescheduler, "spec": spec},
        stock_image=platform.cluster_config or "/kube-scheduler" in f"/{before.image}",
        previous_arguments=before.arguments,
        apiserver=others.get("APIServer"),
        feature_gate=others.get("FeatureGate"),
        infrastructure=others.get("Infrastructure"),
        serving_certificate=any("--tls-cert-file" in each for each in before.arguments),
    )


def _composed(inputs: Inputs) -> Composition:
    from ..config.compose import compose

    composition = compose(inputs)
    if composition.blocking:
        reasons = [finding.text for finding in composition.findings if finding.blocking]
        raise common.CommandError(
            f"nothing would be rolled out: {reasons[0]}; `validate` has all that is wrong"
        )
    return composition
