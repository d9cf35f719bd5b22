"""What is on record of kube-scheduler's versions, compared with the releases themselves."""

from __future__ import annotations

import itertools

import pytest

from cluster import releases
from versions.differences import differences
from versions.sources import source

MINORS = sorted(releases.PINNED)

pytestmark = pytest.mark.timeout(1800)


@pytest.mark.parametrize(("older", "minor"), list(itertools.pairwise(MINORS)))
def test_the_record_is_what_the_release_has(older: int, minor: int) -> None:
    version, before = releases.PINNED[minor], releases.PINNED[older]
    kubernetes = source("k8s.io/kubernetes", version)
    is_built = version == releases.DEFAULT
    assert list(differences(version, kubernetes, before, with_program=is_built)) == []
