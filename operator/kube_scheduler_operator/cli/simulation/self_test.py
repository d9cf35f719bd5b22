"""Schedules one Pod through every scheduler and profile, and removes them in every case.

A Pod asks for almost nothing and is deleted as soon as it has a node, before most kubelets start
it. Its label keeps assignments from changing its schedulerName.
"""

from __future__ import annotations

import argparse
import asyncio
import time
import uuid
from collections.abc import Mapping, Sequence
from contextlib import aclosing, suppress
from typing import Any, Final

from ...base import names
from ...base.objects import Object, age, mapping, uid_of
from ...base.platform import Platform
from ...base.progress import step
from ...base.templates import fit_name
from ...config.language.schema import DEFAULT_SCHEDULER
from ...kube.client import ApiClient
from ...kube.errors import KubeError, NotFound
from ...kube.resource import CONFIG_MAPS, PODS, SECONDARY_SCHEDULERS
from ...operator.status.conditions import condition_in
from ..checks.check import CheckResult, CheckState
from ..checks.small_pod import small_pod
from ..cluster.operator_objects import find_object, list_by_name
from ..console.errors import CommandError, error_message
from ..console.input_files import embedded_document

CHECK: Final = "self-test"
LINK: Final = f"troubleshooting.md#{CHECK}"
LABEL: Final = f"{names.PREFIX}/self-test"
"""On the Pods of a self test; its value is the test."""

_INTERVAL: Final = 0.1
"""Seconds between two lists of the Pods."""

_CLEANUP_SECONDS: Final = 10.0
_NAME: Final = 63
_CONTROL_PLANE: Final = "the control plane's scheduler"


async def profiles_to_try(api: ApiClient, platform: Platform) -> dict[str, str]:
    """Map the schedulerNames of all profiles to who serves them, for messages.

    It is default-scheduler if none is configured.

    Raises:
        KubeError: the configuration or the SecondarySchedulers cannot be read.
    """
    profiles: dict[str, str] = {}
    config: Object | None = None
    if platform.owns_static_pods:
        ref = CONFIG_MAPS.named(names.CONFIG, platform.target_namespace)
        texts = mapping(mapping(await find_object(api, ref)).get("data"))
        config = embedded_document(texts.get(names.CONFIG_KEY))
    configured: Sequence[Any] = mapping(config).get("profiles") or ({},)
    for profile in configured:
        profiles[str(mapping(profile).get("schedulerName") or DEFAULT_SCHEDULER)] = _CONTROL_PLANE
    secondaries = await list_by_name(api, SECONDARY_SCHEDULERS) or {}
    for obj in sorted(secondaries.values(), key=age):  # the older one keeps a name that two claim
        owner = f"{SECONDARY_SCHEDULERS.kind} {obj['metadata']['name']}"
        for profile in mapping(obj.get("status")).get("profiles") or ():
            profiles.setdefault(str(profile["schedulerName"]), owner)
    return profiles


async def self_test(
    api: ApiClient, platform: Platform, namespace: str, seconds: float
) -> list[CheckResult]:
    """Return the result for each profile, within about `seconds`.

    Raises:
        KubeError: a Pod cannot be created, or the Pods cannot be listed.
    """
    profiles = await profiles_to_try(api, platform)
    run = uuid.uuid4().hex[:8]
    try:
        started: dict[str, tuple[str, float]] = {}
        for name in profiles:
            pod = await api.create(PODS, test_pod(name, namespace, run))
            started[name] = uid_of(pod), time.monotonic()
        with step(f"waiting up to {seconds:g} s for the nodes of {len(profiles)} Pods"):
            return await _observe(api, platform, namespace, run, profiles, started, seconds)
    finally:
        # Also after Ctrl-C, and for a Pod whose creation was sent but not answered.
        await asyncio.shield(_clean_up(api, namespace, run))


def test_pod(scheduler_name: str, namespace: str, run: str) -> Object:
    name = fit_name(f"scheduler-self-test-{run}-{scheduler_name}".lower(), _NAME)
    labels = {LABEL: run, names.ASSIGN_LABEL: names.ASSIGN_NEVER}
    return small_pod(name, namespace, labels, scheduler_name)


async def _observe(
    api: ApiClient,
    platform: Platform,
    namespace: str,
    run: str,
    profiles: Mapping[str, str],
    started: Mapping[str, tuple[str, float]],
    seconds: float,
) -> list[CheckResult]:
    """`started` has the uid of each profile's Pod, and when it was created.

    Others may create Pods with its labels in the namespace.
    """
    results: dict[str, CheckResult] = {}
    end = time.monotonic() + seconds
    pods: dict[str, Object] = {}
    while True:
        listed = await api.list(PODS, namespace, label_selector=f"{LABEL}={run}")
        seen = time.monotonic()
        by_uid = {uid_of(pod): pod for pod in listed.items}
        pods = {name: by_uid[uid] for name, (uid, _) in started.items() if uid in by_uid}
        for name, scheduler in profiles.items():
            node = mapping(mapping(pods.get(name)).get("spec")).get("nodeName")
            if node and name not in results:
                took = f"bound to {node} in {seen - started[name][1]:.2f} s"
                text = f'profile "{name}" of {scheduler}: {took}'
                results[name] = CheckResult(CHECK, CheckState.OK, text, link=LINK)
        if len(results) == len(profiles) or seen > end:
            break
        await asyncio.sleep(_INTERVAL)
    for name, scheduler in profiles.items():
        if name not in results:
            pod = pods.get(name) or {}
            results[name] = await _not_bound(api, platform, name, scheduler, pod, seconds)
    return [results[name] for name in profiles]


async def _not_bound(
    api: ApiClient, platform: Platform, name: str, scheduler: str, pod: Object, seconds: float
) -> CheckResult:
    cause = f'profile "{name}" of {scheduler}: no node after {seconds:g} s: '
    scheduled = condition_in(mapping(pod.get("status")), "PodScheduled")
    if not scheduled:
        cause += "no scheduler has tried the Pod"
        hint = (
            "check that this scheduler runs and holds its Lease: kubectl scheduler status"
            if scheduler == _CONTROL_PLANE
            else f"kubectl describe {scheduler.lower().replace(' ', '/')}"
        )
        return CheckResult(CHECK, CheckState.FAILED, cause, hint, LINK)
    cause += str(scheduled.get("message") or scheduled.get("reason"))
    hint = await _explained(api, platform, name, pod)
    return CheckResult(CHECK, CheckState.FAILED, cause, hint, LINK)


async def _explained(api: ApiClient, platform: Platform, name: str, pod: Object) -> str:
    """Return what would help, as `why` finds it out with a kube-scheduler on this machine."""
    # Loaded here, because completion uses this module.
    from ...simulate.why import explain
    from .flags import add_simulation_flags
    from .run import from_cluster

    parser = argparse.ArgumentParser()
    add_simulation_flags(parser)
    try:
        flags = parser.parse_args(["--local", "--timeout", "30"])
        async with aclosing(await from_cluster(api, platform, flags, name)) as simulation:
            explanation = await simulation.ask(explain, pod=dict(pod))
    except (CommandError, KubeError):
        return "kubectl scheduler why POD explains a Pod with this schedulerName that waits"
    if explanation.fixes:
        return f"what would help: {'; '.join(fix.text for fix in explanation.fixes[:3])}"
    causes = dict.fromkeys(cause.text for group in explanation.groups for cause in group.causes)
    if causes:
        return f"every node refuses it: {'; '.join(list(causes)[:3])}"
    return "the Pod would fit now: the scheduler has not tried it again yet"


async def _clean_up(api: ApiClient, namespace: str, run: str) -> None:
    """Delete the Pods; an error names those that are left.

    Raises:
        CommandError: a Pod may be left.
    """
    selector = f"{LABEL}={run}"
    try:
        async with asyncio.timeout(_CLEANUP_SECONDS):
            for pod in (await api.list(PODS, namespace, label_selector=selector)).items:
                with suppress(NotFound):
                    await api.delete(PODS.ref(pod), grace_period_seconds=0)
    except (KubeError, TimeoutError) as error:
        why = error_message(error) if isinstance(error, KubeError) else "no answer"
        raise CommandError(
            f"Pods of the self test may be left ({why}); delete them: "
            f"kubectl -n {namespace} delete pods -l {selector}"
        ) from error
