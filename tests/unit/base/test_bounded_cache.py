from __future__ import annotations

from kube_scheduler_operator.base.bounded_cache import BoundedCache


def test_a_full_cache_is_emptied() -> None:
    cache: BoundedCache[str, int] = BoundedCache(entries=2, size=100)
    for key in "abc":
        cache.keep(key, 1, 1)
    assert [cache.get(key) for key in "abc"] == [None, None, 1]


def test_the_sum_of_sizes_is_bounded() -> None:
    cache: BoundedCache[str, int] = BoundedCache(entries=100, size=10)
    for number in range(50):
        cache.keep(str(number), number, 4)
        assert cache.used <= 10
        assert len(cache) * 4 == cache.used


def test_what_is_too_large_is_not_kept_and_others_stay() -> None:
    cache: BoundedCache[str, int] = BoundedCache(entries=100, size=10, largest=5)
    cache.keep("small", 1, 5)
    cache.keep("large", 2, 6)
    assert (cache.get("small"), cache.get("large")) == (1, None)
