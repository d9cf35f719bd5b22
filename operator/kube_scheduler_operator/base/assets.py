"""Files that ship with the program: crds/, templates/, bindata/, and a page of docs/.

In a wheel they are inside the package, in a checkout at the top of the repository.
"""

from __future__ import annotations

from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path


def directory(kind: str) -> Traversable:
    """Find the directory "crds", "templates", "bindata" or "docs"."""
    packaged = files("kube_scheduler_operator") / "_data" / kind
    if packaged.is_dir():
        return packaged
    return Path(__file__).parents[3] / kind


def text(kind: str, name: str) -> str:
    """Read the file `name`, which may contain `/`, in the directory `kind`."""
    return directory(kind).joinpath(*name.split("/")).read_text(encoding="utf-8")
