"""Which connection makes room."""

from __future__ import annotations

import pytest

from kube_scheduler_operator.serving.sharing import Standing, Use, makes_room

USES = {use.name.lower(): use for use in Use}


def standings(text: str) -> list[Standing]:
    """Words such as "api:rests"; with "*3", three times."""
    found = []
    for word in text.split():
        name, _, number = word.partition("*")
        address, _, use = name.partition(":")
        found += int(number or 1) * [(address, USES[use])]
    return found


@pytest.mark.parametrize(
    ("connections", "first"),
    [
        pytest.param("api:opens a:unused", 1, id="a-handshake-outlives-an-unused-one"),
        pytest.param("api:rests*25 api:opens a:unused b:unused", 26, id="pool-and-strangers"),
        pytest.param("api:opens*5 a:unused b:unused", 5, id="a-burst-and-strangers"),
        pytest.param("kept:unused a:opens*9", 1, id="a-flood-and-an-unused-one"),
        pytest.param("api:rests api:opens*9 a:unused", 10, id="a-burst-of-a-known-client"),
        pytest.param("a:unused b:unused*2", 1, id="most-unused"),
        pytest.param("a:unused b:unused", 0, id="the-oldest-unused"),
        pytest.param("api:rests*3 a:opens*9", 3, id="silent-handshakes-of-one"),
        pytest.param("api:rests*3 a:asks*9", 3, id="requests-of-one"),
        pytest.param("api:rests*3 api:opens a:opens b:opens", 0, id="silent-handshakes-of-many"),
        pytest.param("api:opens a:new b:new", 1, id="equal-numbers-new-before-handshakes"),
        pytest.param("api:opens a:rests b:rests", 1, id="equal-numbers-idle-before-handshakes"),
        pytest.param("a:works a:asks a:opens a:new a:rests", 4, id="of-one-address"),
        pytest.param("a:works a:works", 0, id="nothing-else"),
    ],
)
def test_the_first_to_make_room(connections: str, first: int) -> None:
    assert next(makes_room(standings(connections))) == first


@pytest.mark.parametrize("use", ["unused", "new"])
@pytest.mark.parametrize("number", [1, 2, 5])
@pytest.mark.parametrize("others", ["", "api:rests*4", "c:works*3"])
def test_a_single_handshake_never_goes_before_an_idle_stranger(
    use: str, number: int, others: str
) -> None:
    found = standings(f"lone:opens {others} a:{use}*{number}")
    order = list(makes_room(found))
    assert sorted(order) == list(range(len(found)))
    idle = [at for at, one in enumerate(found) if one[0] == "a"]
    assert order.index(0) > order.index(idle[0])
