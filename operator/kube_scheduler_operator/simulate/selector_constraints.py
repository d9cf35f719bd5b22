"""The nodeSelector and the required node affinity of a pod, with what nodes have instead.

Source: the plugin nodeaffinity (node_affinity.go) of Kubernetes 1.35.
"""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from typing import Any, Final

from ..base.objects import controller_of, mapping
from ..kube.label_selector import requirements
from .constraint import Change, Constraint, Rank, RuleRepair, distinct, no_edits
from .edits import Edit
from .kinds import IMPOSSIBLE, Object
from .node_rules import NAME, REQUIRED, admits, topology_keys
from .runtime_classes import class_selector, runtime_class
from .world import World

_EXPRESSIONS: Final = ("matchExpressions", "matchFields")
_AFFINITY: Final = f"spec.affinity.nodeAffinity.{REQUIRED}"
_WORDS: Final = "node affinity"
_RESERVED: Final = ("kubernetes.io", "k8s.io")
"""Domains of labels that describe a node; a user does not set them to attract a pod."""
_PLACES: Final = ("topology.kubernetes.io/zone", "topology.kubernetes.io/region")
_FAMILY: Final = 3
"""Labels with the same prefix that are compared like any others."""
_STRICT: Final = 0.85
_CLOSE: Final = 5
"""Similar keys of which the names are compared."""
_VALUES: Final = 3
_DAEMON_SET: Final = "DaemonSet"


NO_LABELS: Final = "node affinity/selector"
"""A part of kube-scheduler's reason for nodes without the labels that a pod demands."""


def demanded_labels(spec: Mapping[str, Any]) -> str:
    """Write the labels that a pod demands of nodes; not those of a node by its name."""
    parts = [f"{key}={value}" for key, value in sorted(mapping(spec.get("nodeSelector")).items())]
    required = mapping(mapping(mapping(spec.get("affinity")).get("nodeAffinity")).get(REQUIRED))
    terms = [
        " and ".join(map(str, requirements(term)))
        for term in required.get("nodeSelectorTerms") or ()
    ]
    return ", ".join((*parts, *([" or ".join(filter(None, terms))] if any(terms) else [])))


def selector_constraints(pod: Mapping[str, Any], world: World) -> Iterator[Constraint]:
    spec, labels = pod["spec"], _Labels(world, pod["spec"])
    added = class_selector(runtime_class(spec, world))
    for key, value in mapping(spec.get("nodeSelector")).items():
        remove, use = partial(_remove_selector, key=key), partial(_select, key=key)
        owner = f"RuntimeClass {spec['runtimeClassName']}" if added.get(key) == value else ""
        origin = f"; it comes from {owner}" if owner else ""
        demands = f"the pod's nodeSelector demands {key}={value}"
        text = f"the pod's nodeSelector demands the label {key}={value}{labels.note(key, [value])}"
        yield Constraint(
            "node affinity",
            text + origin,
            f"remove {key}={value} from the nodeSelector{f' of {owner}' if owner else ''}",
            remove,
            on=partial(labels.instead, key, [value], demands, origin=origin),
            field="" if owner else "spec.nodeSelector",
            others=partial(_of_class, owner, key, value) if owner else no_edits,
            repairs=partial(labels.repairs, key, [value], remove, "spec.nodeSelector", use),
            words=_WORDS,
        )
    required = mapping(mapping(mapping(spec.get("affinity")).get("nodeAffinity")).get(REQUIRED))
    terms = required.get("nodeSelectorTerms") or []
    expressions = [
        [(field, entry) for field in _EXPRESSIONS for _, entry in distinct(term.get(field) or ())]
        for term in terms
    ]
    if (alone := _node_of_daemon(pod, expressions)) is not None:
        yield alone
    elif len(terms) == 1:
        for field, entry in expressions[0]:
            yield _of_expression(field, entry, labels)
    elif terms:
        texts = (
            " and ".join(written_expression(entry) for _, entry in term) for term in expressions
        )
        yield Constraint(
            "node affinity",
            f"the pod's node affinity demands {' or '.join(texts)}, and the node meets none of "
            "these terms",
            "remove the required node affinity",
            _remove_node_affinity,
            field=_AFFINITY,
            words=_WORDS,
        )


def _of_class(owner: str, key: str, value: Any, _nodes: Sequence[str]) -> Iterator[Edit]:
    yield Edit(owner, f"scheduling.nodeSelector[{key}]", value)


def _node_of_daemon(
    pod: Mapping[str, Any], expressions: Sequence[Sequence[tuple[str, Any]]]
) -> Constraint | None:
    """Return the rule that a DaemonSet writes: each of its pods is for one node."""
    owner = controller_of(pod) or {}
    if owner.get("kind") != _DAEMON_SET or not expressions:
        return None
    named = [[entry for field, entry in term if field == "matchFields"] for term in expressions]
    if not all(len(term) == 1 and term[0].get("key") == NAME for term in named):
        return None
    node = ", ".join(map(str, named[0][0].get("values") or ()))
    name = str(owner.get("name"))
    return Constraint(
        "node affinity",
        f"the pod is for node {node} alone: DaemonSet {name} has one for each node",
        "",
        _remove_node_affinity,
        words=_WORDS,
    )


def _of_expression(field: str, entry: Mapping[str, Any], labels: _Labels) -> Constraint:
    label, key = written_expression(entry), str(entry.get("key") or "")
    values = list(map(str, entry.get("values") or ()))
    demands = f"the pod's node affinity demands {label}"
    remove = partial(_remove_expression, field=field, expression=entry)
    use = partial(_demand, field=field, expression=entry)
    of_labels = field == _EXPRESSIONS[0]
    is_label = of_labels and entry.get("operator") == "In"
    instead = partial(labels.instead, key, values, demands) if is_label else None
    if of_labels and not is_label:
        instead = partial(labels.present, key, demands)
    return Constraint(
        "node affinity",
        f"{demands}{labels.note(key, values) if is_label else ''}{_unnamed(field, labels, values)}",
        f"remove {'the demand for ' * (entry.get('operator') == 'DoesNotExist')}{label} from the "
        "node affinity",
        remove,
        on=instead,
        field=_AFFINITY,
        repairs=partial(labels.repairs, key, values, remove, _AFFINITY, use) if is_label else tuple,
        words=_WORDS,
    )


def _unnamed(field: str, labels: _Labels, values: Sequence[str]) -> str:
    """Return that no node has a name that is demanded; empty: one has, or labels are demanded."""
    demanded = field != _EXPRESSIONS[0] and bool(values)
    return ", and no node has this name" if demanded and not labels.names(values) else ""


class _Labels:
    """The labels of all nodes, and what the spec of a pod demands of them."""

    def __init__(self, world: World, spec: Mapping[str, Any]) -> None:
        self._world, self._spec = world, spec
        self._values_by_key: dict[str, list[str]] = {}

    @cached_property
    def _of_nodes(self) -> Mapping[str, Mapping[str, str]]:
        return self._world.labels_of_nodes()

    @cached_property
    def _keys(self) -> Counter[str]:
        return Counter(key for labels in self._of_nodes.values() for key in labels)

    def _values(self, key: str) -> list[str]:
        known = self._values_by_key.get(key)
        if known is None:  # `instead` asks for each node
            found = {labels[key] for labels in self._of_nodes.values() if key in labels}
            known = sorted(value for value in found if not value.startswith(IMPOSSIBLE))
            self._values_by_key[key] = known
        return known

    def note(self, key: str, wanted: Sequence[str]) -> str:
        """Return what nodes have instead of a label that none of them has; empty: some have it."""
        values = self._values(key)
        if set(values) & set(wanted):
            return ""
        if values:
            more = f" and {len(values) - _VALUES} other values" if len(values) > _VALUES else ""
            return f", which no node has; nodes have {', '.join(values[:_VALUES])}{more}"
        similar = self._similar(key)
        also = f"; nodes have the label {similar}" if similar else ""
        return f", and no node has the label {key}{also}"

    def _similar(self, key: str) -> str:
        """Return the label of nodes that may be meant; empty: none is similar.

        Labels of a long list with one prefix, such as the features of a CPU, are similar by nature:
        of these, the names without it are compared, and more strictly.
        """
        prefix = "".join(key.rpartition("/")[:2])
        family = {one.removeprefix(prefix): one for one in self._keys if one.startswith(prefix)}
        if prefix and len(family) > _FAMILY:
            found = difflib.get_close_matches(key.removeprefix(prefix), family, 1, _STRICT)
            return family[found[0]] if found else ""
        # Keys of one domain are similar by nature as well: their names have to be.
        close = difflib.get_close_matches(key, self._keys, _CLOSE)
        name = key.rpartition("/")[2]
        named = (one for one in close if difflib.get_close_matches(name, [one.rpartition("/")[2]]))
        return next(named, "")

    def instead(
        self, key: str, wanted: Sequence[str], demands: str, node: str, origin: str = ""
    ) -> str:
        """Return what a node has instead of a label that others have; empty: nothing."""
        value = self._of_nodes.get(node, {}).get(key)
        if value is None or not set(self._values(key)) & set(wanted):
            return ""  # `note` has the values of all nodes
        return f"{demands}, and the node has {key}={value}{origin}"

    def present(self, key: str, demands: str, node: str) -> str:
        """Return what a node has, of which a demand is about more than some values."""
        value = self._of_nodes.get(node, {}).get(key)
        if value is None and key not in self._keys:
            return f"{demands}, and no node has the label {key}"
        has = f"no label {key}" if value is None else f"{key}={value}"
        return f"{demands}, and the node has {has}"

    def names(self, wanted: Sequence[str]) -> set[str]:
        """Return those of these names that nodes have."""
        return self._of_nodes.keys() & set(wanted)

    def _admits_with(self, key: str, value: str, name: str) -> bool:
        """Return whether the pod's rules about labels admit a node that gets one."""
        metadata = {"name": name, "labels": {**self._of_nodes.get(name, {}), key: value}}
        return admits(self._spec, {"metadata": metadata})

    def repairs(
        self,
        key: str,
        values: Sequence[str],
        remove: Change,
        field: str,
        use: Callable[..., None],
    ) -> Iterator[RuleRepair]:
        """Yield what makes a node have a label that none has.

        That a node gets the label has the effect of `remove` for that node, unless another rule
        demands the value that it has; `use` makes a pod demand another value, of labels of zones
        and regions.
        """
        known = self._values(key)
        if set(known) & set(values) or not values:
            return
        if not (key.partition("/")[0] if "/" in key else "").endswith(_RESERVED):
            if key in topology_keys(self._spec):
                return  # a node that gets it changes what counts in each of its domains
            flag = " --overwrite" if known else ""
            yield RuleRepair(
                f"label a node: kubectl label node NODE {key}={values[0]}{flag}",
                remove,
                others=lambda nodes: [
                    Edit(f"Node {node}", f"metadata.labels[{key}]", labels.get(key), values[0])
                    for node in nodes
                    if (labels := self._of_nodes.get(node)) is not None
                ],
                only=partial(self._admits_with, key, values[0]),
            )
            return
        for value in known[:_VALUES] if key in _PLACES else ():
            text = f"demand {key}={value} instead of {values[0]}"
            yield RuleRepair(text, partial(use, value=value), field)
        text = f"add a node with the label {key}={values[0]}"
        yield RuleRepair(text, remove, rank=Rank.NODE)


def _remove_selector(pod: Object, key: str) -> None:
    del pod["spec"]["nodeSelector"][key]


def _select(pod: Object, key: str, value: str) -> None:
    pod["spec"]["nodeSelector"][key] = value


def _demand(pod: Object, field: str, expression: Mapping[str, Any], value: str) -> None:
    (term,) = pod["spec"]["affinity"]["nodeAffinity"][REQUIRED]["nodeSelectorTerms"]
    changed = {**expression, "values": [value]}
    term[field] = [changed if other == expression else other for other in term[field]]


def _remove_node_affinity(pod: Object) -> None:
    pod["spec"]["affinity"]["nodeAffinity"].pop(REQUIRED)


def _remove_expression(pod: Object, field: str, expression: Mapping[str, Any]) -> None:
    (term,) = pod["spec"]["affinity"]["nodeAffinity"][REQUIRED]["nodeSelectorTerms"]
    term[field] = [other for other in term[field] if other != expression]
    if not any(term.get(name) for name in _EXPRESSIONS):
        _remove_node_affinity(pod)


def written_expression(expression: Mapping[str, Any]) -> str:
    key, operator = expression.get("key", ""), expression.get("operator", "")
    values = ", ".join(map(str, expression.get("values") or ()))
    words = {"In": "in", "NotIn": "not in", "Gt": "greater than", "Lt": "less than"}
    if operator == "Exists":
        return f"the label {key}"
    if operator == "DoesNotExist":
        return f"no label {key}"
    return f"{key} {words.get(operator, operator)} {values}"
