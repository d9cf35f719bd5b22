"""The policies themselves: whom they are for, what they look at, and their files.

Every policy has the same form. Its variables prepare the data; those that end in `Problems` hold
the lines of what is wrong, and there is a validation for each of them. Types come first, as in
kube-scheduler: rules are only looked at when every value has the type that it must have.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from kube_scheduler_operator.base import names
from kube_scheduler_operator.base.platform import PLATFORMS
from kube_scheduler_operator.schedulerconfig.catalogue import NEWEST, OLDEST
from kube_scheduler_operator.schedulerconfig.schema import CONFIGURATION, List, Struct, Type

from . import arguments, profiles, settings
from .cel import LONGEST, decode, get, let, restart, text, wrapped

GROUP: Final = "kube-scheduler-operator.dev"
EXTRA_PLUGINS: Final = "extraPlugins"
"""The first variable, which is for people to change."""

_SHOWN: Final = 10
_MISTAKES: Final = "Problems"
_KUBE: Final = (("15s", "10s", "2s"),)

HEAD: Final = """\
# Made by hack/admission from the tables of the operator's own check: change those, not this.
"""


@dataclass(frozen=True, slots=True)
class Policy:
    """A ValidatingAdmissionPolicy.

    Attributes:
        kind: of the objects, in lower case.
        group: of the objects, and so the next.
        version: as they are served.
        resource: plural.
        changed: the name of a condition, and the condition: only then it is looked at.
        variables: name -> expression, in the order in which they need each other.
        versioned: whether it has to know the operand's version.
    """

    kind: str
    group: str
    version: str
    resource: str
    changed: tuple[str, str]
    variables: Mapping[str, str]
    versioned: bool = True

    @property
    def name(self) -> str:
        """Of the policy and of its binding."""
        return f"{self.kind}.{GROUP}"


def policies() -> list[Policy]:
    """All of them."""
    restart()
    return [_kube_scheduler(), _scheduler(), _scheduler_profile(), _secondary_scheduler()]


def files() -> dict[str, str]:
    """The files of deploy/admission that are made: name -> content."""
    return {f"{policy.kind}.yaml": rendered(policy) for policy in policies()}


_SPEC: Final = "dyn(object).spec"
"""Of any type: what is in it has to be looked at, and not what its definition promises."""


# --- the four policies ---------------------------------------------------------------------------


def _kube_scheduler() -> Policy:
    field = "unsupportedConfigOverrides"
    root = text(f"spec.{field}")
    own: Mapping[str, Type] = dict.fromkeys(("arguments", "servingInfo"), "any")
    return Policy(
        "kubescheduler", "operator.openshift.io", "v1", "kubeschedulers",
        _changed(field),
        {
            **_common(_reported(), _ON_RECORD),
            "config": f"{_SPEC}.{field}",
            **_settings(root, own, settings.platform_timings()),
            "ownedProblems": settings.owned("variables.settings", root),
            "flagProblems": settings.flags("variables.config", root),
            "typeMetaProblems": settings.type_meta("variables.config", root),
            **_profiles(f'{root[:-1]}.profiles"'),
        },
    )  # fmt: skip


def _scheduler() -> Policy:
    """What the CustomResourceDefinition does not say already; it has the profiles' names."""
    message = (
        f'"spec.policy.name: the Policy " + {_SPEC}.policy.name + " is not used, because '
        "Kubernetes 1.23 removed Policy; remove spec.policy and use spec.profile or "
        'spec.unsupportedConfigOverrides of the KubeScheduler"'
    )
    given = f"{get(_SPEC, 'policy', '{}')}"
    named = let(given, "p", f'{get("p", "name", text(""))} != ""')
    return Policy(
        "scheduler", "config.openshift.io", "v1", "schedulers",
        _changed("policy"),
        {"indices": _INDICES, f"policy{_MISTAKES}": f'({named} ? {message} : "")'},
        versioned=False,
    )  # fmt: skip


def _scheduler_profile() -> Policy:
    """Who runs it is not known here, if that is a SecondaryScheduler: nor are its plugins."""
    root = text("spec")
    other = get(_SPEC, "scheduler", '""')
    of = CONFIGURATION.fields["profiles"]
    assert isinstance(of, List)
    assert isinstance(of.item, Struct)
    fields: dict[str, Type] = {**of.item.fields, "scheduler": "any", "base": "any"}
    return Policy(
        "schedulerprofile", GROUP, "v1alpha1", "schedulerprofiles",
        ("spec-changed", "oldObject == null || oldObject.spec != object.spec"),
        {
            **_common(
                f'({other} == "" ? {_reported()} : -1)', f'{other} == "" && {_ON_RECORD}'
            ),
            "config": _SPEC,
            f"type{_MISTAKES}": decode(Struct(fields), "variables.config", root),
            "listed": f'variables.type{_MISTAKES} == "" ? [variables.config] : []',
            **_argument_types(root, alone=True),
            "profiles": "variables.typed ? variables.listed : []",
            f"profile{_MISTAKES}": profiles.profiles(root, alone=True),
            **_argument_rules(),
        },
    )  # fmt: skip


def _secondary_scheduler() -> Policy:
    image = get(_SPEC, "image", '""')
    tagged = f'{image}.find(":v?1[.][0-9]+")'
    own = let(tagged, "t", '(t == "" ? -1 : int(t.split(".")[1]))')
    stock = f'("/" + {image}).matches("/kube-scheduler[:@]")'
    record = f'({image} == "" || {stock} ? {_ON_RECORD} : {_KNOWN})'
    common = _common(f'({image} == "" ? {_reported()} : {own})', record)
    common["checkNames"] = f'{common["checkNames"]} && ({image} == "" || {stock})'
    root = text("spec.config")
    return Policy(
        "secondaryscheduler", GROUP, "v1alpha1", "secondaryschedulers",
        ("spec-changed", "oldObject == null || oldObject.spec != object.spec"),
        {
            **common,
            "config": get(_SPEC, "config", "{}"),
            **_settings(root, {}, _KUBE, beside=_SPEC),
            **_profiles(text("spec.profiles"), first_is_named=True),
        },
    )  # fmt: skip


# --- what they have in common --------------------------------------------------------------------

_INDICES: Final = text(list(range(LONGEST)))
_KNOWN: Final = f"variables.minor >= {OLDEST.minor} && variables.minor <= {NEWEST.minor}"
_ON_RECORD: Final = f"(variables.minor < 0 || {_KNOWN})"


def _changed(field: str) -> tuple[str, str]:
    """What was there before does not stand in the way of another edit; nor does what is removed."""
    new, old = (f"{owner}.?spec.?{field}.orValue(null)" for owner in ("object", "oldObject"))
    return f"{field.lower()}-changed", f"{new} != null && (oldObject == null || {new} != {old})"


def _reported() -> str:
    """The minor version that ClusterOperator says all schedulers run, or -1."""
    found = (
        "params.?status.?versions.orValue([])"
        f'.filter(v, v.name == {text(names.OPERAND)}).map(v, v.version.find("^v?1[.][0-9]+"))'
        '.filter(v, v != "").map(v, int(v.split(".")[1]))'
    )
    return let(found, "m", "(m.size() == 1 ? m[0] : -1)")


def _common(minor: str, on_record: str) -> dict[str, str]:
    known = profiles.table()
    return {
        EXTRA_PLUGINS: "[]",
        "indices": _INDICES,
        "points": profiles.known_points(),
        "plugins": text(known),
        "pluginNames": text(sorted(known)),
        "minor": minor,
        "version": '(variables.minor < 0 ? "" : " 1." + string(variables.minor))',
        "onRecord": on_record,
        "checkNames": f'variables.onRecord && !("*" in variables.{EXTRA_PLUGINS})',
    }


def _settings(
    root: str, own: Mapping[str, Type], defaults: Iterable[tuple[str, str, str]], beside: str = ""
) -> dict[str, str]:
    """Types and rules of a configuration; `beside` is where its profiles are, if not in it."""
    lists = {key: CONFIGURATION.fields[key] for key in ("profiles", "extenders")}
    fields: dict[str, Type] = {**CONFIGURATION.fields, **own, **dict.fromkeys(lists, "any")}
    listing = beside or "variables.config"
    path = text("spec") if beside else root
    if beside:
        del fields["profiles"]
    types = {
        f"type{_MISTAKES}": decode(Struct(fields), "variables.config", root),
        f"profileType{_MISTAKES}": _decoded(lists["profiles"], listing, "profiles", path),
        f"extenderType{_MISTAKES}": _decoded(
            lists["extenders"], "variables.config", "extenders", root
        ),
        "listed": f'variables.profileType{_MISTAKES} == "" ? {get(listing, "profiles", "[]")} : []',
    }
    where = "variables.settings"
    return {
        **types,
        **_argument_types(f'{path[:-1]}.profiles"', list(types)),
        "settings": "variables.typed ? variables.config : {}",
        "profiles": "variables.typed ? variables.listed : []",
        f"number{_MISTAKES}": settings.numbers(where, root),
        f"election{_MISTAKES}": _unless_flags(settings.election(where, root, list(defaults))),
        f"extender{_MISTAKES}": settings.extenders(where, root),
    }


def _profiles(path: str, *, first_is_named: bool = False) -> dict[str, str]:
    return {
        f"profile{_MISTAKES}": profiles.profiles(path, first_is_named=first_is_named),
        f"queue{_MISTAKES}": profiles.same_queue(path),
        **_argument_rules(),
    }


def _argument_types(
    path: str, before: Sequence[str] = (f"type{_MISTAKES}",), *, alone: bool = False
) -> dict[str, str]:
    """Types of arguments; `typed` says whether all types are right, those `before` included."""
    found = {
        f"{_variable(plugin)}Type{_MISTAKES}": expression
        for plugin, expression in arguments.types("arguments").items()
    }
    names_ = [name for name in (*before, *found) if name.endswith(_MISTAKES)]
    return {
        "arguments": arguments.entries("listed", path, alone=alone),
        **found,
        "typed": " && ".join(f'variables.{name} == ""' for name in names_),
        "typedArguments": "variables.typed ? variables.arguments : []",
    }


def _argument_rules() -> dict[str, str]:
    return {
        f"{_variable(plugin)}{_MISTAKES}": expression
        for plugin, expression in arguments.rules("typedArguments").items()
    }


def _variable(plugin: str) -> str:
    return plugin[0].lower() + plugin[1:]


def _decoded(kind: Type, owner: str, field: str, root: str) -> str:
    inside = decode(kind, "v", f'{root[:-1]}.{field}"')
    return let(get(owner, field, "[]"), "v", inside)


def _unless_flags(expression: str) -> str:
    """Flags win over the file, so with such flags the file alone says nothing."""
    elected = 'a.exists(k, k.replace("_", "-").startsWith("leader-elect"))'
    given = get("variables.settings", "arguments", "{}")
    flags = let(given, "a", f"type(a) != map || {elected}")
    return f'({flags} ? "" : {expression})'


# --- YAML ----------------------------------------------------------------------------------------


def rendered(policy: Policy) -> str:
    """The file of a policy: itself and its binding."""
    name, condition = policy.changed
    mistakes = [variable for variable in policy.variables if variable.endswith(_MISTAKES)]
    out = [
        HEAD.rstrip(),
        "apiVersion: admissionregistration.k8s.io/v1",
        "kind: ValidatingAdmissionPolicy",
        *_metadata(policy.name),
        "spec:",
        "  # The operator checks everything again, and a policy that fails must keep nobody from",
        "  # mending a scheduler.",
        "  failurePolicy: Ignore",
    ]
    if policy.versioned:
        out += [
            "  # Where the operator reports the version that all schedulers run.",
            "  paramKind:",
            "    apiVersion: config.openshift.io/v1",
            "    kind: ClusterOperator",
        ]
    out += [
        "  matchConstraints:",
        "    resourceRules:",
        f"      - apiGroups: [{policy.group}]",
        f"        apiVersions: [{policy.version}]",
        "        operations: [CREATE, UPDATE]",
        f"        resources: [{policy.resource}]",
        "  matchConditions:",
        f"    - name: {name}",
        "      expression: |-",
        wrapped(condition, 8),
        "  variables:",
    ]
    for variable, expression in policy.variables.items():
        if variable == EXTRA_PLUGINS:
            out.append("    # Plugins that a kube-scheduler of your own has beside the stock ones;")
            out.append('    # ["*"]: do not look at names and extension points.')
        out += [f"    - name: {variable}", "      expression: |-", wrapped(expression, 8)]
    out.append("  validations:")
    for variable in mistakes:
        out += [
            "    - expression: |-",
            wrapped(f'variables.{variable} == ""', 8),
            "      reason: Invalid",
            "      message: >-",
            "        there are too many mistakes to list here; mend some, or ask",
            "        kube-scheduler-operator compose -f FILE for all of them",
            "      messageExpression: |-",
            wrapped(_shown(variable), 8),
        ]
    out += [
        "---",
        "apiVersion: admissionregistration.k8s.io/v1",
        "kind: ValidatingAdmissionPolicyBinding",
        *_metadata(policy.name),
        "spec:",
        f"  policyName: {policy.name}",
        "  # Or [Warn, Audit]: let it pass, and say what is wrong.",
        "  validationActions: [Deny]",
    ]
    if policy.versioned:
        out += [
            "  paramRef:",
            f"    name: {names.CLUSTEROPERATOR}",
            "    parameterNotFoundAction: Allow",
        ]
    return "\n".join(out) + "\n"


def _metadata(name: str) -> list[str]:
    return [
        "metadata:",
        f"  name: {name}",
        "  labels:",
        f"    app.kubernetes.io/name: {names.PROGRAM}",
        f"    {names.PART_OF_LABEL}: {names.PROGRAM}",
    ]


def _shown(variable: str) -> str:
    """The first lines of what is wrong, as one line: a message may have no other."""
    some = f'variables.indices.map(i, i < {_SHOWN} && i < l.size(), l[i]).join(" | ")'
    rest = f'(l.size() > {_SHOWN} ? " | and more" : "")'
    return let(f'variables.{variable}.split("\\n")', "l", f"{some} + {rest}")


__all__ = ["EXTRA_PLUGINS", "PLATFORMS", "Policy", "files", "policies", "rendered"]
