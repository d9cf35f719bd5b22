"""Documents that kube-scheduler does not read or find, because of others in their file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ....base.findings import WARNING, Problem
from ....base.source.reader import Document
from ...language.schema import KIND
from ..checks import NEVER_READ, Item
from ..forms.kubeadm import GROUP as KUBEADM_GROUP
from ..known_kinds import is_for_kube_scheduler
from .find_documents import FIRST_ONLY, Source, is_read


def unread_documents(source: Source) -> Iterator[tuple[Item, Problem]]:
    """Yield the documents of a file that kube-scheduler does not read or find, and why.

    kops reads a configuration that follows its Cluster, and kubeadm ignores one in its file.
    """
    items, first, place = source.items, source.first, source.place
    groups = {item.group for item in items}
    if first is None or not items or "kops.k8s.io" in groups or (place and place.is_part):
        return
    text = place.text if place else None
    if KUBEADM_GROUP in groups or (text is not None and text.for_kubeadm):
        yield from ((item, _ignored_by_kubeadm()) for item in items if item.kind == KIND)
    elif is_read(items[0]):
        yield from ((item, _never_read(item)) for item in items[1:] if is_for_kube_scheduler(item))
    else:
        yield from _hidden_configurations(source, first)


def _never_read(item: Item) -> Problem:
    """Return the warning for a document that follows a configuration."""
    message = f"{FIRST_ONLY} and ignores this one"
    fix = "move it to its own file"
    if item.kind == KIND:
        fix += ", or move its profiles to the first document"
    return Problem(NEVER_READ, (), message, fix, WARNING)


def _hidden_configurations(source: Source, first: Document) -> Iterator[tuple[Item, Problem]]:
    """Report the configurations of a file whose first document is none."""
    fix = "move the configuration to a file of its own"
    if first.index:
        what, fix = "empty", "remove everything above the --- that precedes this configuration"
    elif not isinstance(first.root.data, Mapping):
        what = f"not an object (line {_line(source, first)})"
    else:
        kind = first.root.data.get("kind")
        what = f"a {kind}" if kind else "an object without kind"
        what += f" (line {_line(source, first)})"
    for item in source.items:
        if item.kind != KIND:
            continue
        if item.document.is_listed:
            message = "kube-scheduler reads no List and exits with an error"
        else:
            message = (
                f"{FIRST_ONLY}, which is {what}, and exits with an error; this one is document "
                f"{item.document.index + 1}"
            )
        yield item, Problem(NEVER_READ, (), message, fix)


def _line(source: Source, document: Document) -> int:
    """Return the line in the file that users see."""
    position = document.root.position
    return (source.place.in_file(position) if source.place else position).line


def _ignored_by_kubeadm() -> Problem:
    message = (
        "kubeadm ignores a KubeSchedulerConfiguration in its file, and kube-scheduler runs "
        "without it"
    )
    fix = (
        "write it to a file of each control-plane node, and let scheduler.extraArgs name it with "
        "config and extraVolumes mount it; `kubectl scheduler compose --for kubeadm` writes both"
    )
    return Problem(NEVER_READ, (), message, fix, WARNING)
