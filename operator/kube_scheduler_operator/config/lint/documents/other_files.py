"""What a file is that has nothing for kube-scheduler, in one sentence.

If it is neither YAML nor JSON, also how to get a configuration from it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ....base.findings import Problem
from ....base.objects import mapping
from ....base.source.reader import read
from ....base.source.tree import Position
from ...language.schema import API_VERSION, CONFIGURATION, KIND
from ..checks import Item
from ..forms.document_fields import objects
from ..forms.embedded import CONFIG_MAP
from ..forms.helm_values import is_koordinator
from ..forms.volcano import NOT_CHECKED, is_kai

NOTHING_TO_CHECK: Final = "NothingToCheck"

_PROGRAMS: Final[Mapping[str, str]] = {
    "kubelet.config.k8s.io": "the kubelet's configuration",
    "kubeproxy.config.k8s.io": "kube-proxy's configuration",
    "apiserver.config.k8s.io": "kube-apiserver's configuration",
    "audit.k8s.io": "an audit policy of kube-apiserver",
    "descheduler": "the policy of the descheduler, which evicts Pods and places none",
    "kueue.x-k8s.io": "of Kueue",
    "config.kueue.x-k8s.io": "the configuration of Kueue, which admits jobs and binds no Pod",
    "kai.scheduler": "of KAI Scheduler",
    "scheduling.run.ai": "of KAI Scheduler",
    "scheduling.volcano.sh": "of Volcano",
    "scheduler.config.gardener.cloud": "the configuration of gardener-scheduler, which chooses "
    "seeds for Shoots",
    "componentconfig.karmada.io": "Karmada's configuration",
}
"""API group -> whose file it is, of files that people mistake for kube-scheduler's."""
_COMMON: Final = ("apps", "batch", "autoscaling", "policy", "extensions")
CHECKED: Final = "name a KubeSchedulerConfiguration, or a file of docs/validating.md#forms"


_CONCERNING: Final = re.compile(
    rb"scheduler|policy|operatorsettings|secret|tiers|kustomiz|configmapgenerator|write_files|ignition"
    rb"|^resources:|pluginconfig|^[ \t]*[\"']?plugins[\"']?[ \t]*:|\A\xff\xfe|\A\xfe\xff",
    re.IGNORECASE | re.MULTILINE,
)


def may_concern(content: str | bytes) -> bool:
    """Report whether a file may contain anything for kube-scheduler, within microseconds."""
    data = content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content
    return _CONCERNING.search(data) is not None


CONFIGURATION_FIELDS: Final = frozenset(CONFIGURATION.fields) - {"apiVersion", "kind"}
"""The fields of a configuration, which show what a document without kind should be."""
_OF_LISTS: Final[Mapping[str, frozenset[str]]] = {
    "profiles": frozenset({"schedulerName", "plugins", "pluginConfig"}),
    "extenders": frozenset({"urlPrefix"}),
}
"""List of a configuration -> the fields of its objects that no other program's objects have."""
_OF_OBJECTS: Final = frozenset({"apiVersion", "kind", "metadata", "spec"})


def has_no_type(item: Item) -> bool:
    """Report whether a document is neither an object nor a configuration whose kind is missing."""
    fields = {str(key).strip("\ufeff") for key in item.value}
    has_type = any("kind" in field or "apiVersion" in field for field in fields)
    return not has_type and not fields & (_OF_OBJECTS | CONFIGURATION_FIELDS)


def lacks_its_kind(value: Mapping[str, Any]) -> bool:
    """Report whether a document without kind has profiles or extenders of a configuration."""
    if "kind" in value:
        return False
    return any(
        not of.isdisjoint(entry)
        for field, of in _OF_LISTS.items()
        for _, entry in objects(value.get(field))
    )


def nothing_to_check(item: Item) -> Problem:
    return Problem(
        NOTHING_TO_CHECK, (), f"has no scheduler configuration: it is {what_is(item)}", CHECKED
    )


def of_volcano() -> Problem:
    return Problem(NOTHING_TO_CHECK, (), NOT_CHECKED, CHECKED)


def no_configuration(item: Item, owner: str) -> Problem:
    """Report that a text of `owner` is not a configuration, which it must be."""
    message = f"{owner} must have a scheduler configuration here, and this is {what_is(item)}"
    fix = f"write a configuration that begins with apiVersion: {API_VERSION} and kind: {KIND}"
    return Problem(NOTHING_TO_CHECK, (), message, fix)


def what_is(item: Item) -> str:
    """Name what a document is: `a Deployment`, `a kubeconfig, …`."""
    value, kind, group = item.value, item.kind, item.group
    if is_kubeconfig(value):
        return (
            "a kubeconfig, the credentials of a client; kube-scheduler's configuration names it "
            "in clientConnection.kubeconfig"
        )
    if foreign := _foreign(value):
        return foreign
    if chart := _chart(value):
        return chart
    if kind == CONFIG_MAP and (inner := _inner(value)):
        return f"a ConfigMap with {inner}"
    if group in _PROGRAMS:
        return f"{with_article(kind)}, {_PROGRAMS[group]}"
    if kind:
        is_common = not group or group.endswith(".k8s.io") or group in _COMMON
        return with_article(kind) + ("" if is_common else f" of {group}")
    if item.api_version:
        return f"an object of {item.api_version} without kind"
    if any(str(key).startswith(("Error from server", "error")) for key in value):
        return "an error message, perhaps of kubectl"
    keys = ", ".join(str(key) for key in list(value)[:3])
    return f"not a Kubernetes object; its fields are {keys}" if keys else "empty"


def _foreign(value: Mapping[str, Any]) -> str:
    """Name another scheduler's configuration without a kind; empty: unknown."""
    if is_kai(value):
        return "the configuration of KAI Scheduler, which kube-scheduler does not read"
    if "partitions" in value and "kind" not in value:
        return "the configuration of YuniKorn, which kube-scheduler does not read"
    return ""


def _chart(value: Mapping[str, Any]) -> str:
    """Name the values of a chart that configures its scheduler elsewhere; empty: unknown."""
    if "kind" in value:
        return ""
    if "scheduler_image_name" in mapping(value.get("basic")) and "custom" in value:
        return (
            "values of Volcano's chart, which uses its own volcano-scheduler.conf: "
            "custom.scheduler_config_override replaces it"
        )
    if "yunikornDefaults" in value:
        return "values of YuniKorn's chart, whose scheduler reads queues and partitions"
    image = mapping(value.get("scheduler")).get("image")
    if isinstance(image, str) and "scheduler-plugins/" in image:
        return (
            "values of the chart of scheduler-plugins, which makes the configuration of "
            "plugins.enabled, plugins.disabled and pluginConfig; none of them is set"
        )
    if is_koordinator(value):
        return (
            "values of Koordinator's chart, which has the configuration in its template "
            "koord-scheduler-config.yaml: check the output of helm template"
        )
    return ""


def _inner(value: Mapping[str, Any]) -> str:
    """Name another program's configuration in a ConfigMap, with its key; empty: unknown."""
    for key, text in mapping(value.get("data")).items():
        if not isinstance(text, str) or not _OTHERS.search(text):
            continue
        for document in read(text)[0]:
            inner = mapping(document.root.data)
            group = str(inner.get("apiVersion") or "").rpartition("/")[0]
            what = _foreign(inner) or _PROGRAMS.get(group, "")
            if what:
                return f"{what} ({key})"
    return ""


_OTHERS: Final = re.compile(
    "|".join((r"^partitions\s*:", r"^tiers\s*:", *map(re.escape, _PROGRAMS))), re.MULTILINE
)


def is_kubeconfig(value: Mapping[str, Any]) -> bool:
    return (
        value.get("kind") == "Config"
        and {"clusters", "users", "contexts"} & set(mapping(value)) != set()
    )


def with_article(kind: str) -> str:
    return f"{'an' if kind[:1] in 'AEIOUaeiou' else 'a'} {kind}"


def counted_kinds(kinds: Sequence[str]) -> str:
    """Write `2 Deployments and a Service`, the most frequent ones first."""
    counts = Counter(kind or "object without kind" for kind in kinds).most_common()
    words = [
        with_article(kind) if count == 1 else f"{count} {_plural(kind)}" for kind, count in counts
    ]
    if len(words) > 4:
        words = [*words[:3], f"{len(words) - 3} other kinds"]
    return f"{', '.join(words[:-1])} and {words[-1]}" if len(words) > 1 else "".join(words)


def _plural(kind: str) -> str:
    if kind == "object without kind":
        return "objects without kind"
    if kind.endswith("y") and kind[-2:-1] not in "aeiou":
        return f"{kind[:-1]}ies"
    return f"{kind}es" if kind.endswith(("s", "x", "ch")) else f"{kind}s"


# --- files that are neither YAML nor JSON --------------------------------------------------------
# Their syntax errors as YAML are about places that are right in their own language. Templates of
# Helm, Jinja and envsubst are among them, as long as they are not rendered.

NOT_RENDERED: Final = "NotRendered"

RENDERED: Final = "kubectl scheduler validate -"
"""The command that checks what a template is rendered to."""
_COMPRESSED: Final = ((b"\x1f\x8b", "gzip"), (b"\x28\xb5\x2f\xfd", "zstd"), (b"BZh", "bzip2"))
"""(first bytes, the program that decompresses the file)."""
_LANGUAGES: Final = tuple(
    (re.compile(pattern, re.MULTILINE), what, fix)
    for pattern, what, fix in (
        (
            r"\A\s*<(?:!DOCTYPE|html|\?xml|[A-Za-z]+>)",
            "an HTML or XML page, perhaps the answer to a failed download",
            "download the file itself: curl -fLO URL",
        ),
        (
            r"^(?:diff --git |@@ -\d)",
            "a diff",
            "apply it first: patch < FILE",
        ),
        (
            r'^[ \t]*(?:resource|data|module|variable|provider)[ \t]+"[^"\n]+"[^\n]*\{[ \t]*$',
            "Terraform",
            "copy the text of the configuration to a file of its own, or check what terraform "
            "applied: kubectl get configmap NAME -o yaml",
        ),
        (
            r"^[ \t]*[^#\s][^\n]*<<[-~]?[ \t]*[\"']?[A-Za-z_]\w*[\"']?",
            "a shell script with a here-document",
            "copy the text between the command and the end mark to a file of its own",
        ),
        (
            r"\A(?:\s*#[^\n]*\n)*\s*(?:\[[\w.\"-]+\][ \t]*$|[\w.-]+[ \t]*=[ \t]*[\"'\[\d])",
            "TOML",
            "write it as YAML, with a colon and a space after each key",
        ),
    )
)
"""(what shows the language, its name, how to get YAML)."""
_TEMPLATES: Final = tuple(
    (re.compile(pattern), what, f"{fix} | {RENDERED}")
    for pattern, what, fix in (
        (
            r"\{\{-?\s*(?:\.|\$|/\*|(?:include|template|define|toYaml|tpl|with|range|if|else|end|"
            r"printf|default|required|quote|block)\b)|-\}\}",
            "a template of Helm or another Go template",
            "render it first: helm template CHART",
        ),
        (
            r"\{%|\{\{.*?\}\}|\{#.*?#\}",
            "a Jinja template",
            "render it first, for example: jinja2 FILE VALUES",
        ),
        (r"<%[=\-#]?", "an ERB template", "render it first: erb FILE"),
        (
            r"\$\{[A-Za-z_][A-Za-z0-9_]*(?::?[-=?+][^}\n]*)?\}",
            "a template for envsubst",
            "substitute the variables first: envsubst < FILE",
        ),
    )
)
"""(the expressions of a template, its name, how to render it)."""


@dataclass(frozen=True, slots=True)
class ForeignFile:
    position: Position  # of what shows it; of a template its first expression
    message: str  # what it is
    fix: str  # how to get a file that can be checked


def foreign_file(data: bytes) -> ForeignFile | None:
    """Recognize the language of a file that is neither YAML nor JSON; None: unknown."""
    for mark, program in _COMPRESSED:
        if data.startswith(mark):
            fix = f"decompress it first: {program} -d FILE"
            return ForeignFile(Position(1, 1), f"this is compressed with {program}", fix)
    text = data.decode("utf-8", "replace")
    for pattern, what, fix in _LANGUAGES:
        if (match := pattern.search(text)) is not None:
            start = match.start() + len(match[0]) - len(match[0].lstrip())
            return ForeignFile(
                Position(text.count("\n", 0, start) + 1, 1), f"this is {what}, not YAML", fix
            )
    return None


def template_of(text: str) -> ForeignFile | None:
    """Recognize the template that a text is; None: no known one.

    Expressions in comments do not count.
    """
    if "{{" not in text and "{%" not in text and "${" not in text and "<%" not in text:
        return None
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("#"):
            continue
        for pattern, what, fix in _TEMPLATES:
            match = pattern.search(line)
            if match:
                position = Position(number, match.start() + 1)
                return ForeignFile(position, f"this is {what} that is not rendered", fix)
    return None
