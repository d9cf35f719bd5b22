"""Requests are parsed in every spelling, and responses are in the same form."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kube_scheduler_operator.scheduling.extender import wire
from kube_scheduler_operator.scheduling.extender.wire import (
    ArgsReader,
    Binding,
    Fragments,
    WireError,
    preempted,
    read_preemption,
)
from kube_scheduler_operator.scheduling.policies.cluster import Cluster

from .conftest import POD, names_body, node, nodes_body


def read(body: bytes) -> wire.Args:
    return ArgsReader().read(body)


def test_the_form_with_names() -> None:
    args = read(names_body("a", "b"))
    assert args.names == ["a", "b"]
    assert args.items is None
    assert (args.pod.namespace, args.pod.name, args.pod.uid) == ("shop", "web", "u-1")


def test_the_form_with_nodes() -> None:
    args = read(nodes_body(node("a"), node("b")))
    assert args.names == ["a", "b"]
    assert args.items is not None
    assert args.items[1]["metadata"]["name"] == "b"


@pytest.mark.parametrize(
    "body",
    [
        {"pod": POD, "nodenames": ["a", "b"]},
        {"NODENAMES": ["a", "b"], "nodes": None, "POD": POD},
        {"nodeNames": ["a", "b"], "Pod": POD, "unknown": {"x": [1]}},
        {"pod": POD, "nodes": {"Items": [node("a"), node("b")]}},
        {"pod": POD, "nodes": {"items": [node("a"), node("b")]}, "nodenames": None},
    ],
)
def test_keys_are_read_in_any_case_and_order(body: Any) -> None:
    assert read(json.dumps(body).encode()).names == ["a", "b"]
    assert read(json.dumps(body, indent=2).encode() + b"\n").names == ["a", "b"]


@pytest.mark.parametrize(
    "piece", [b"[],", b"{},", b"1,", b'"",', b'{"a":[1]},', b"[[[[1]]]],", b'{"a":{"b":{}}},']
)
@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b'{"Pod":{"metadata":{}},"Nodes":null,"NodeNames":[', b'"a"]}'),
        (b'{"Pod":{"metadata":{},"x":[', b'1]},"Nodes":null,"NodeNames":["a"]}'),
        (b'{"Pod":{"metadata":{}},"Nodes":{"items":[', b'{}]},"NodeNames":null}'),
        (b'{"nodenames":["a"],"pod":{"x":[', b"1]}}"),
    ],
)
def test_bodies_with_too_many_values_are_refused(
    piece: bytes, before: bytes, after: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wire, "MAX_VALUES", 300_000)
    body = before + piece * 310_000 + after
    with pytest.raises(WireError, match="limited to 300000 JSON values"):
        read(body)
    for read_other in (Binding, read_preemption):
        with pytest.raises(WireError, match="limited to 300000 JSON values"):
            read_other(body)


def test_requests_with_too_many_nodes_are_refused(cluster: Cluster) -> None:
    names = [f"n{number}" for number in range(wire.MAX_NODES + 1)]
    args = read(names_body(*names))
    with pytest.raises(WireError, match="limited to 100000 nodes"):
        args.locate(cluster)
    read(names_body(*names[1:])).locate(cluster)


def test_the_largest_supported_cluster_is_within_the_limits(cluster: Cluster) -> None:
    conditions = [
        {"type": str(at), "status": "True", "reason": "x", "message": "a, b, c"} for at in range(8)
    ]
    images = [{"names": ["a@sha256:1", "a:1"], "sizeBytes": 12345} for _ in range(50)]
    fields: dict[str, Any] = {f"f:{at}": {} for at in range(120)}
    status = {"conditions": conditions, "images": images}
    more = {"managedFields": [{"fieldsV1": fields}]}
    item = node("x") | {"status": status}
    item["metadata"] = item["metadata"] | more
    body = nodes_body(*[item] * 5000)
    args = read(body)
    args.locate(cluster)
    assert len(args.names) == 5000


def test_names_take_precedence_over_nodes() -> None:
    body = {"Pod": POD, "Nodes": {"items": [node("a")]}, "NodeNames": ["b"]}
    args = read(json.dumps(body).encode())
    assert (args.names, args.items) == (["b"], None)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", "not JSON"),
        (b"{", "not JSON"),
        (b"[]", "must be a JSON object"),
        (b"null", "must be a JSON object"),
        (b'{"Pod":{},"NodeNames":[NaN]}', "not JSON"),
        (b'{"Pod":{"a":"\\ud800"},"NodeNames":[]}', "not JSON"),
        (b'{"Pod":{"a":"\xff"},"NodeNames":[]}', "not JSON"),
        (b'{"Pod":' + b"[" * 100_000, "not JSON"),
        (b'{"NodeNames":[]}', "Pod is missing"),
        (b'{"Pod":null,"NodeNames":[]}', "Pod is missing"),
        (b'{"Pod":[],"Nodes":null,"NodeNames":["a"]}', "Pod is missing"),
        (b'{"Pod":{}}', "neither NodeNames nor Nodes"),
        (b'{"Pod":{},"Nodes":null,"NodeNames":null}', "neither NodeNames nor Nodes"),
        (b'{"Pod":{},"NodeNames":"a"}', "NodeNames must be a list"),
        (b'{"Pod":{},"NodeNames":["a",1]}', "NodeNames must be a list"),
        (b'{"Pod":{},"Nodes":[]}', "neither"),
        (b'{"Pod":{},"Nodes":{"items":{}}}', "Nodes.items must be a list"),
        (b'{"Pod":{},"Nodes":{"items":[null]}}', "metadata.name"),
        (b'{"Pod":{},"Nodes":{"items":[{"metadata":{"name":7}}]}}', "metadata.name"),
    ],
)
def test_invalid_requests_are_errors(body: bytes, message: str) -> None:
    with pytest.raises(WireError, match=message.replace(".", r"\.")):
        read(body)


@pytest.mark.parametrize("names", ['["a",1]', '["a",null]', '["a",["b"]]', '["a",{"b":"c"}]'])
def test_the_fast_path_detects_names_that_are_not_strings(names: str, cluster: Cluster) -> None:
    args = read(b'{"Pod":{},"Nodes":null,"NodeNames":%b}' % names.encode())
    with pytest.raises(WireError, match="list of strings"):
        args.locate(cluster)


def test_the_same_body_is_parsed_once() -> None:
    reader = ArgsReader()
    args = reader.read(names_body("a", "b"))
    assert reader.read(names_body("a", "b")) is args


def test_the_same_pod_is_parsed_once() -> None:
    reader = ArgsReader()
    first = reader.read(names_body("a", "b"))
    pod = first.pod
    second = reader.read(names_body("b"))
    assert second.names == ["b"]
    assert second.pod is pod
    other = reader.read(names_body("b", pod={**POD, "x": 1}))
    assert other.pod is not pod


def test_complete_nodes_are_not_cached() -> None:
    reader = ArgsReader()
    body = nodes_body(node("a"))
    assert reader.read(body) is not reader.read(body)


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)
TRICKY = st.sampled_from(
    ['x","Nodes":null,"NodeNames":["y', ',"Nodes":null,"NodeNames":[', "]}", '"]}', "\\", '\\"']
)


@given(
    st.lists(
        st.tuples(
            st.dictionaries(TEXTS | TRICKY, JSON | TRICKY, max_size=4),
            st.lists(TEXTS | TRICKY, max_size=4),
            st.booleans(),
        ),
        max_size=4,
    )
)
def test_the_fast_path_equals_the_full_parser(
    requests: list[tuple[dict[str, Any], list[str], bool]],
) -> None:
    reader = ArgsReader()
    for pod, names, plain in requests:
        body = json.dumps(
            {"Pod": pod, "Nodes": None, "NodeNames": names},
            separators=(",", ":") if plain else None,
            ensure_ascii=not plain,
        ).encode()
        quick = reader.read(body)
        assert (quick.object, quick.names) == (pod, names)
        assert json.loads(quick.nodes.json) == names


@given(st.dictionaries(TEXTS | TRICKY, JSON | TRICKY, max_size=4), st.lists(JSON, max_size=3))
def test_complete_nodes_are_returned_unchanged(pod: dict[str, Any], rest: Any) -> None:
    items = [{"metadata": {"name": f"n{at}"}, "rest": each} for at, each in enumerate(rest)]
    body = {"Pod": pod, "Nodes": {"metadata": {}, "items": items}, "NodeNames": None}
    for separators in ((",", ":"), None):
        args = read(json.dumps(body, separators=separators).encode())
        assert (args.object, args.items) == (pod, items)
        assert json.loads(wire.accepted(args))["Nodes"]["items"] == items


@given(st.binary(max_size=40), st.binary(max_size=20))
def test_the_fast_path_rejects_invalid_json(before: bytes, after: bytes) -> None:
    body = b'{"Pod":{}' + before + b',"Nodes":null,"NodeNames":[' + after + b"]}"
    try:
        expected = {key.lower(): value for key, value in json.loads(body).items()}
    except ValueError:
        with pytest.raises(WireError):
            read(body)
        return
    try:
        args = read(body)
    except WireError:
        return  # stricter than Python's JSON, which takes NaN, or names that are not strings
    assert args.names == expected["nodenames"]
    assert args.object == expected["pod"]


def test_nodes_are_looked_up_in_the_cluster(cluster: Cluster) -> None:
    args = read(names_body("c", "a"))
    args.locate(cluster)
    assert [cluster.names[index] for index in args.indices] == ["c", "a"]
    assert args.positions is None


def test_unknown_nodes_are_separated(cluster: Cluster) -> None:
    args = read(names_body("x", "c", "y", "a"))
    args.locate(cluster)
    assert [cluster.names[index] for index in args.indices] == ["c", "a"]
    assert args.positions is not None
    assert args.positions.tolist() == [1, 3]
    cluster.set_node(node("x"))
    args.locate(cluster)
    assert args.positions.tolist() == [0, 1, 3]


def test_a_filter_that_accepts_all_keeps_the_form_of_the_request() -> None:
    names = json.loads(wire.accepted(read(names_body("a", "ü", 'q"'))))
    assert names == {
        "Nodes": None,
        "NodeNames": ["a", "ü", 'q"'],
        "FailedNodes": {},
        "FailedAndUnresolvableNodes": {},
        "Error": "",
    }
    nodes = json.loads(wire.accepted(read(nodes_body(node("a")))))
    assert nodes["NodeNames"] is None
    assert nodes["Nodes"]["items"] == [node("a")]


def test_rejected_nodes_are_separated() -> None:
    for body in (names_body("a", "b", "c"), nodes_body(node("a"), node("b"), node("c"))):
        answer = json.loads(wire.filtered(read(body), {0: "hot", 2: "never"}, {2}))
        left = answer["NodeNames"] or [n["metadata"]["name"] for n in answer["Nodes"]["items"]]
        assert left == ["b"]
        assert answer["FailedNodes"] == {"a": "hot"}
        assert answer["FailedAndUnresolvableNodes"] == {"c": "never"}
        assert answer["Error"] == ""


@pytest.mark.parametrize("asked", [("c", "a", "b"), ("c", "x", "a", "b")])
def test_names_left_by_a_filter_are_looked_up_in_advance(
    cluster: Cluster, asked: tuple[str, ...]
) -> None:
    reader = ArgsReader()
    first = reader.read(names_body(*asked))
    first.locate(cluster)
    answer = json.loads(wire.filtered(first, {0: "hot"}, ()))
    assert answer["NodeNames"] == list(asked[1:])
    then = reader.read(names_body(*asked[1:]))
    assert then.nodes is first.left
    assert reader.read(names_body(*asked[1:])) is then
    then.locate(cluster)
    again = read(names_body(*asked[1:]))
    again.locate(cluster)
    assert (then.names, then.pod.uid) == (again.names, again.pod.uid)
    assert then.indices.tolist() == again.indices.tolist()
    assert (then.positions is None) == (again.positions is None)
    # What was found counts as long as the names in the cluster are the same.
    cluster.remove_node("a")
    then.locate(cluster)
    assert then.positions is not None
    # Names that are others by one are others.
    assert reader.read(names_body("b")).names == ["b"]


def test_reasons_contain_no_format_verbs() -> None:
    read_args = read(names_body("a", "b"))
    answer = json.loads(wire.filtered(read_args, {0: "90 % is more than 65%", 1: "%"}, {1}))
    assert answer["FailedNodes"] == {"a": "90 percent is more than 65 percent"}
    assert answer["FailedAndUnresolvableNodes"] == {"b": " percent"}
    assert json.loads(wire.failed("5% off")) == {"Error": "5 percent off"}


def test_scores_are_assembled_from_fragments(cluster: Cluster) -> None:
    fragments = Fragments(cluster)
    for number in range(200):
        cluster.set_node(node(f'n"{number}'))
    args = read(names_body("c", 'n"7', "a"))
    args.locate(cluster)
    import numpy as np

    answer = json.loads(fragments.answer(args.indices, np.array([10, 0, 7])))
    assert answer == [
        {"Host": "c", "Score": 10},
        {"Host": 'n"7', "Score": 0},
        {"Host": "a", "Score": 7},
    ]
    assert json.loads(wire.scored(args.names, [10, 0, 7])) == answer
    assert json.loads(fragments.answer(args.indices[:0], np.array([], np.intp))) == []


def test_a_reused_index_gets_new_fragments(cluster: Cluster) -> None:
    import numpy as np

    fragments = Fragments(cluster)
    index = cluster.index["b"]
    cluster.remove_node("b")
    cluster.set_node(node("d"))
    assert cluster.index["d"] == index
    answer = fragments.answer(np.array([index]), np.array([3]))
    assert json.loads(answer) == [{"Host": "d", "Score": 3}]


def test_a_binding_is_parsed_in_any_case() -> None:
    for spell in (str, str.lower, str.upper):
        given = {"PodName": "p", "PodNamespace": "n", "PodUID": "u", "Node": "a"}
        binding = Binding(json.dumps({spell(k): v for k, v in given.items()}).encode())
        assert (binding.name, binding.namespace, binding.uid, binding.node) == ("p", "n", "u", "a")


@pytest.mark.parametrize("missing", ["PodName", "PodNamespace", "Node"])
def test_a_binding_needs_all_fields(missing: str) -> None:
    given: dict[str, Any] = {"PodName": "p", "PodNamespace": "n", "PodUID": "u", "Node": "a"}
    for wrong in ({**given, missing: 7}, {**given, missing: ""}):
        with pytest.raises(WireError):
            Binding(json.dumps(wrong).encode())


META = {"Pods": [{"UID": "v-1"}, {"UID": "v-2"}], "NumPDBViolations": 1}
WHOLE = {
    "Pods": [{"metadata": {"uid": "v-1"}}, {"metadata": {"uid": "v-2"}}],
    "NumPDBViolations": 1,
}


@pytest.mark.parametrize(
    "victims",
    [
        {"NodeNameToVictims": {}, "NodeNameToMetaVictims": {"a": META, "b": META}},
        {"NodeNameToVictims": {"a": WHOLE, "b": WHOLE}, "NodeNameToMetaVictims": {}},
        {"NodeNameToVictims": {"a": WHOLE, "b": WHOLE}, "NodeNameToMetaVictims": None},
        {"nodenametometavictims": {"a": META, "b": {"pods": META["Pods"], "numPDBViolations": 1}}},
    ],
)
def test_victims_are_returned_by_uid(victims: dict[str, Any]) -> None:
    args, found = read_preemption(json.dumps({"Pod": POD, **victims}).encode())
    assert args.names == ["a", "b"]
    assert json.loads(preempted(args.names[1:], found[1:])) == {
        "NodeNameToMetaVictims": {"b": META}
    }


@pytest.mark.parametrize(
    "victims", [7, {"a": 7}, {"a": {"Pods": 7}}, {"a": {"Pods": [7]}}, {"a": {"Pods": [{}]}}]
)
def test_invalid_victims_are_errors(victims: Any) -> None:
    with pytest.raises(WireError):
        read_preemption(json.dumps({"Pod": POD, "NodeNameToMetaVictims": victims}).encode())
