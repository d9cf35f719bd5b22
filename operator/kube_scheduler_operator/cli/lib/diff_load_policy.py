"""`kubectl scheduler diff -f` of a LoadPolicy: its file for programs, and what else changes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import common

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Mapping

    from ...base.platform import Platform
    from ...kube.api import Object
    from ...kube.client import ApiClient
    from ...load.policy import LoadPolicy


async def differences(
    api: ApiClient, platform: Platform, obj: Mapping[str, Any], label: str
) -> tuple[list[str], list[str]]:
    """(what an edit would change, in words; the same as a patch of the file).

    Args:
        api: of the cluster.
        platform: what the operator was installed for.
        obj: the LoadPolicy.
        label: what the other side of the patch is called.

    Raises:
        CommandError: nothing would come of it, and why.
    """
    import difflib

    from ...kube.resource import CONFIG_MAPS, ObjectRef
    from ...load.policy import FILE, LoadPolicyError
    from ...load.policy_files import read_policy, read_spec
    from ...loadpolicy.objects import policy_config_map

    name = str(obj["metadata"]["name"])
    ref = ObjectRef(CONFIG_MAPS, platform.target_namespace, policy_config_map(name))
    found = await common.find_one(api, ref)
    if found is None:
        raise common.CommandError(
            f'LoadPolicy "{name}" has nothing yet that this could be compared with; `compose -f` '
            "shows what it would have"
        )
    before = str((found.get("data") or {}).get(FILE) or "")
    try:
        after = read_spec(obj.get("spec")).policy
        old = read_policy(before).policy
    except LoadPolicyError as error:
        raise common.CommandError(f"nothing would come of it: {error}") from error
    words = [*_words(old, after), *[line async for line in _changed(api, platform, obj)]]
    lines = difflib.unified_diff(
        before.splitlines(), after.text().splitlines(), ref.name, label, lineterm=""
    )
    return words, list(lines)


def _words(before: LoadPolicy, after: LoadPolicy) -> Iterator[str]:
    old, new = dict(_flat(before.document())), dict(_flat(after.document()))
    for key in dict.fromkeys((*old, *new)):
        if key not in new:
            yield f"{key}: {old[key]} is gone"
        elif key not in old:
            yield f"{key}: {new[key]} is new"
        elif old[key] != new[key]:
            yield f"{key}: {old[key]} is {new[key]}"


def _flat(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """(path, value) of every leaf; entries of a list go by what tells them apart."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _flat(item, f"{path}.{key}" if path else key)
    elif isinstance(value, list) and any(isinstance(item, dict) for item in value):
        for item in value:
            key = "name" if "name" in item else "seconds"
            rest = {name: each for name, each in item.items() if name != key}
            yield from _flat(rest, f"{path}[{item[key]}]")
    else:
        yield path, ", ".join(map(str, value)) or "nothing" if isinstance(value, list) else value


async def _changed(
    api: ApiClient, platform: Platform, obj: Mapping[str, Any]
) -> AsyncIterator[str]:
    """Which of exporter and annotator would be made or changed, but for what only the file says."""
    from ...base import names
    from ...base.objects import annotation
    from ...kube.resource import ObjectRef
    from ...loadpolicy.objects import workloads

    cluster = await _annotator(api, platform, str(obj["metadata"]["name"]))
    if cluster is None:
        return
    owner = {**obj, "metadata": {**obj["metadata"], "uid": _owner(cluster)}}
    place = _place(cluster, platform)
    for resource, wanted, spec_hash in workloads(owner, obj.get("spec") or {}, place):
        ref = ObjectRef(resource, platform.target_namespace, wanted["metadata"]["name"])
        found = await common.find_one(api, ref)
        if found is None:
            yield f"{ref} is made"
        elif annotation(found, names.SPEC_HASH_ANNOTATION) != spec_hash:
            yield f"{ref} is changed"


async def _annotator(api: ApiClient, platform: Platform, name: str) -> Object | None:
    from ...base import names
    from ...kube.resource import DEPLOYMENTS, ObjectRef

    ref = ObjectRef(DEPLOYMENTS, platform.target_namespace, f"{names.LOAD_ANNOTATOR}-{name}")
    return await common.find_one(api, ref)


def _place(deployment: Object, platform: Platform) -> Any:
    """What the operator made it of."""
    from ...loadpolicy.objects import Place

    pod = deployment["spec"]["template"]["spec"]
    secrets = tuple(str(one["name"]) for one in pod.get("imagePullSecrets") or ())
    return Place(platform.name, str(pod["containers"][0]["image"]), secrets)


def _owner(deployment: Object) -> str:
    owners = deployment["metadata"].get("ownerReferences") or ()
    return next((str(owner["uid"]) for owner in owners), "")
