"""What Volcano's scheduler accepts in its configuration, read from its sources.

The file format is the Go struct SchedulerConfiguration; actions and plugins are those that its
factories register; arguments are the keys that the packages of a plugin or an action read, each
with the type that the reading function takes and what that function does with another type.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

MODULE = "volcano.sh/volcano"
PAGE = "https://github.com/volcano-sh/volcano/tree/"
CONFIGURATION = "pkg/scheduler/conf/scheduler_conf.go"
STRUCTS = {"file": "SchedulerConfiguration", "tier": "Tier", "action": "Configuration",
           "plugin": "PluginOption"}  # fmt: skip

_COMMENT = re.compile(r"/\*.*?\*/|^\s*//.*?$|(?<=\s)//.*?$", re.MULTILINE | re.DOTALL)
_STRUCT = re.compile(r"^type (\w+) struct \{\n(.*?)^\}", re.MULTILINE | re.DOTALL)
_FIELD = re.compile(r'^\s*\w+\s+(\S+)\s+`yaml:"(\w+)"`', re.MULTILINE)
_TYPES = {"string": "string", "*bool": "bool", "map[string]interface{}": "map",
          "map[string]string": "strings", "[]Tier": "list", "[]PluginOption": "list",
          "[]Configuration": "list"}  # fmt: skip
_IMPORT = re.compile(
    r'^\s*(?:import\s+)?(?:(\w+)\s+)?"volcano\.sh/volcano/([\w./-]+)"', re.MULTILINE
)
_ACTION = re.compile(r"RegisterAction\((\w+)\.New\(\)\)")
_PLUGIN = re.compile(r"RegisterPluginBuilder\((\w+)\.(\w+), \w+\.New\)")
_NAMED = re.compile(r'\) Name\(\) string \{\s*return (\w+|"[\w-]+")\s*\}')
_CONSTANT = re.compile(r'^\s*(?:const )?(\w+)(?: string)?\s*=\s*([\w.]+ \+ )?"([^"\n]*)"$', re.M)
_DERIVED = re.compile(r'^\s*(?:const )?(\w+)\s*=\s*(\w+) \+ "([^"\n]*)"$', re.MULTILINE)

# framework/arguments.go: GetInt, GetFloat64, GetBool and GetString log a value of another type and
# keep the default; Get ends the program.
_GETTER = re.compile(r'(\S+)\.Get(Int|Float64|Bool|String)\([^,]+, ([\w."-]+)\)')
_GET = re.compile(r'framework\.Get\[([^\n(]+)\]\(\w+, ([\w."-]+)\)')
_OTHER_ACTION = "GetArgOfActionFromConf("
_INDEX = re.compile(
    r"(?:(\w+), (?:ok|exist|_) :?= )?(?:\w+\.)?(?:args|\w*[aA]rguments)"
    r'\[([\w."-]+)\](\.\(string\))?'
)
_GETTERS = {"Int": "int", "Float64": "float", "Bool": "bool", "String": "string"}


def record(version: str, tree: Path) -> dict[str, Any]:
    """What one version accepts, from its sources."""
    kubernetes = re.search(r"k8s\.io/kubernetes v(1\.\d+)", (tree / "go.mod").read_text())
    assert kubernetes is not None, "Volcano names no version of Kubernetes"
    structs = dict(_STRUCT.findall(_code(tree / CONFIGURATION)))
    fields = {
        name: {key: _TYPES[kind] for kind, key in _FIELD.findall(structs[struct])}
        for name, struct in STRUCTS.items()
    }
    actions = {}
    for folder, _ in _registered(tree, "actions", _ACTION):
        package = _Package(tree, folder)
        actions[package.name()] = package.arguments()
    plugins = {}
    for folder, constant in _registered(tree, "plugins", _PLUGIN):
        package = _Package(tree, folder)
        plugins[package.constant(constant)] = package.arguments()
    return {
        "version": version,
        "kubernetes": kubernetes[1],
        "source": f"{PAGE}{version}",
        "fields": fields,
        "actions": dict(sorted(actions.items())),
        "plugins": dict(sorted(plugins.items())),
    }


def _code(path: Path) -> str:
    return _COMMENT.sub("", path.read_text())


def _registered(tree: Path, kind: str, pattern: re.Pattern[str]) -> Iterator[tuple[Path, str]]:
    """(folder of the package, constant of the name) of what a factory registers."""
    text = _code(tree / "pkg/scheduler" / kind / "factory.go")
    folders = {
        alias or path.rpartition("/")[2]: tree / path for alias, path in _IMPORT.findall(text)
    }
    for match in pattern.finditer(text):
        yield folders[match[1]], match[2] if pattern.groups > 1 else ""


class _Package:
    """The Go files of a package and those below it."""

    def __init__(self, tree: Path, folder: Path) -> None:
        files = sorted(folder.rglob("*.go"))
        self.folder = folder
        self.text = "\n".join(_code(path) for path in files if not path.name.endswith("_test.go"))
        shared = "\n".join(_code(path) for path in (tree / "pkg/scheduler/conf").glob("*.go"))
        known: dict[str, str] = {
            name: value for name, _, value in _CONSTANT.findall(shared + "\n" + self.text)
        }
        for name, base, suffix in _DERIVED.findall(self.text):
            known[name] = known[base] + suffix
        self.constants = known

    def constant(self, name: str) -> str:
        """The value of a constant, or of a literal."""
        if name.startswith('"'):
            return name.strip('"')
        return self.constants[name.rpartition(".")[2]]

    def name(self) -> str:
        """The name that an action has."""
        match = _NAMED.search(self.text)
        assert match is not None, f"{self.folder} has no Name()"
        return self.constant(match[1])

    def arguments(self) -> dict[str, dict[str, str]]:
        """Key -> {type, otherwise}; a key that ends with `*` is a prefix."""
        found: dict[str, dict[str, str]] = {}
        for owner, kind, key in _GETTER.findall(self.text):
            if _OTHER_ACTION in owner or not re.search(r"(?i)arg", owner):
                continue
            if self._is_known(key):
                found[self.constant(key)] = {"type": _GETTERS[kind], "otherwise": "ignored"}
            else:
                found.update(self._prefix(key, _GETTERS[kind]))
        for kind, key in _GET.findall(self.text):
            found[self.constant(key)] = {"type": _mapstructure(kind), "otherwise": "exits"}
        for match in _INDEX.finditer(self.text):
            if self._is_known(match[2]):
                found.setdefault(self.constant(match[2]), self._indexed(match))
        found.update(self._zones())
        return dict(sorted(found.items()))

    def _is_known(self, key: str) -> bool:
        return key.startswith('"') or key.rpartition(".")[2] in self.constants

    def _prefix(self, variable: str, kind: str) -> dict[str, dict[str, str]]:
        """The keys that a package makes of a prefix: `key := Prefix + resource`."""
        made = re.search(rf"{variable} := (\w+) \+ \w+", self.text)
        if made is None or made[1] not in self.constants:
            return {}
        return {f"{self.constants[made[1]]}*": {"type": kind, "otherwise": "ignored"}}

    def _zones(self) -> dict[str, dict[str, str]]:
        """The keys of a loop over all arguments that looks for a prefix."""
        made = re.search(r"for k, v := range args \{\s*if strings\.Contains\(k, (\w+)\)", self.text)
        if made is None:
            return {}
        # v.(string) without a check ends the program.
        return {f"{self.constants[made[1]]}*": {"type": "string", "otherwise": "exits"}}

    def _indexed(self, match: re.Match[str]) -> dict[str, str]:
        """How a value that a package reads without a getter is converted."""
        if match[3]:
            return {"type": "string", "otherwise": "ignored"}
        variable, rest = match[1], self.text[match.end() : match.end() + 300]
        used = variable and re.search(rf"(.*)\b{variable}\.\((\w+)\)", rest)
        if used and used[2] == "string":
            checked = re.search(r", \w+ :?= $", used[1])
            return {"type": "string", "otherwise": "ignored" if checked else "exits"}
        return {"type": "any", "otherwise": "ignored"}


def _mapstructure(kind: str) -> str:
    """The kind of value that mapstructure decodes into a Go type."""
    if kind in ("int", "int64", "float64"):
        return "number"
    if kind.startswith("[]"):
        return "list"
    return kind if kind in ("string", "bool") else "map"
