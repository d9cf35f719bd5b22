"""Places of the repository that have a list of versions, and lack a release."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tests.configurations import page

from cluster import releases
from cluster.console import run
from cluster.paths import REPOSITORY
from kube_scheduler_operator.config.language import flags
from kube_scheduler_operator.config.language.plugins import in_tree_plugins

_TABLES = "operator/kube_scheduler_operator/config/language"
_TEXTS = (".md", ".py", ".yaml", ".toml", "")
_RECORDINGS = "tests/unit/scheduling/extender/recordings"


def lists(version: str) -> Iterator[str]:
    """What to add a release to."""
    minor = releases.minor(version)
    if in_tree_plugins.NEWEST.minor < minor:
        yield f"NEWEST is 1.{in_tree_plugins.NEWEST.minor}: {_TABLES}/plugins/in_tree_plugins.py"
    if minor not in flags.ON_RECORD:
        yield f"ON_RECORD has no 1.{minor}: {_TABLES}/flags.py"
    if not releases.is_pinned(version):
        yield f"{version} is not pinned: hack/cluster/releases.py"
    is_pre_release = releases.PRE_RELEASE.fullmatch(version) is not None
    if is_pre_release != (minor in in_tree_plugins.PRE_RELEASES):
        place = f"{_TABLES}/plugins/in_tree_plugins.py"
        yield f"PRE_RELEASES {'lacks' if is_pre_release else 'has'} 1.{minor}: {place}"
    if is_pre_release:
        return
    if minor not in page.RUN:
        yield f"RUN has no 1.{minor}: tests/configurations/page.py"
    for form in ("names", "nodes"):
        if not (REPOSITORY / _RECORDINGS / f"v1.{minor}-{form}.json").exists():
            yield f"requests to extenders are not recorded: hack/record-extender 1.{minor}"
            break


def texts(minor: int) -> Iterator[str]:
    """Lines of the repository with a span of versions that ends one before 1.`minor`."""
    for name in run("git", "ls-files", cwd=REPOSITORY).splitlines():
        path = REPOSITORY / name
        if path.is_file() and path.suffix in _TEXTS:
            yield from spans(name, path.read_text(errors="replace"), minor)


def spans(name: str, text: str, minor: int) -> Iterator[str]:
    """The same in the text of one file; an upgrade from one to the other is not a span."""
    span = re.compile(rf"(?<!from )1\.\d+ to 1\.{minor - 1}(?!\d|: (?:something|no change) )")
    for number, line in enumerate(text.splitlines(), 1):
        if found := span.search(line):
            yield f'{name}:{number} has "{found[0]}"'
