"""What the Ready Pods of a SecondaryScheduler run: `status.running`.

`status.configHash` is the content that is rolled out. While its Pods cannot start, the former ones
stay Ready and schedule.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final

from ...base.objects import mapping

_LISTED: Final = 16
"""As many as the definition allows; a rollout has two."""


def list_running(
    serving: Mapping[str, str], holder: str, images: Mapping[str, str]
) -> list[dict[str, Any]]:
    """Return what the Ready Pods run: that of the leader first, then what more Pods run.

    `serving` are the hashes of the contents of these Pods, by name; `holder` is that of the Lease,
    `images` are those of the contents that exist, by hash.
    """
    counts = Counter(filter(None, serving.values()))
    leads = serving.get(holder.rpartition("_")[0])
    order = sorted(counts, key=lambda content: (content != leads, -counts[content], content))
    return [
        {
            "configHash": content,
            **({"image": images[content]} if images.get(content) else {}),
            "readyReplicas": counts[content],
        }
        for content in order[:_LISTED]
    ]


def hashes_that_run(scheduler: Mapping[str, Any]) -> list[str]:
    """Return the hashes of the contents that its Ready Pods run, the leader's first."""
    hashes = (str(content.get("configHash") or "") for content in _running(scheduler))
    return [content for content in hashes if content]


def images_that_run(scheduler: Mapping[str, Any]) -> list[str]:
    """Return the images that its Ready Pods run, the leader's first."""
    images = (str(content.get("image") or "") for content in _running(scheduler))
    return [image for image in dict.fromkeys(images) if image]


def reported_image(scheduler: Mapping[str, Any], content_hash: str) -> str:
    """Return the image that the status has for a content; empty if it has none."""
    for content in (*_running(scheduler), mapping(scheduler.get("status"))):
        if content.get("configHash") == content_hash and content.get("image"):
            return str(content["image"])
    return ""


def _running(scheduler: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    status = mapping(scheduler.get("status"))
    # An older operator reports only the content that is rolled out.
    return status["running"] or () if "running" in status else (status,)
