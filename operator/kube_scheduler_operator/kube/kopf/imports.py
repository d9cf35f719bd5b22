"""kopf, without what it loads for others: everything of kopf that is used here comes from here.

If the official client is installed, kopf imports it whole, to recognise its models in handlers'
results. Nobody hands it such models here, and the client costs two fifths of the time that all
imports of the operator take, and 15 MiB that stay. It is there for those who import it themselves
(kubeconfigs are read with it).
"""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def _hidden(name: str) -> Iterator[None]:
    """Let imports of a package fail, unless it is loaded already."""
    if name in sys.modules:
        yield
        return
    sys.modules[name] = None  # type: ignore[assignment]
    try:
        yield
    finally:
        del sys.modules[name]


with _hidden("kubernetes"):
    import kopf
    from kopf._cogs.clients import watching
    from kopf._cogs.configs.configuration import OperatorSettings, WatchingSettings

__all__ = ["OperatorSettings", "WatchingSettings", "kopf", "watching"]
