"""What hack/known-schedulers reads of Volcano's sources: each way to read an argument."""

from __future__ import annotations

from pathlib import Path

import pytest

from versions.volcano import record

CONFIGURATION = """
package conf

// type SchedulerConfiguration struct { Old string `yaml:"old"` }
type SchedulerConfiguration struct {
	// Actions defines the actions
	Actions string `yaml:"actions"`
	Tiers   []Tier `yaml:"tiers"`
	MetricsConfiguration map[string]string `yaml:"metrics"`
}
type Tier struct {
	Plugins []PluginOption `yaml:"plugins"`
}
type Configuration struct {
	Name string `yaml:"name"`
}
type PluginOption struct {
	Name string `yaml:"name"`
	EnabledVictim *bool `yaml:"enabledVictim"`
	Arguments map[string]interface{} `yaml:"arguments"`
}
"""
CONSTANTS = 'package conf\n\nconst (\n\tCacheKey = "cacheEnable"\n)\n'
ACTIONS = """
import "volcano.sh/volcano/pkg/scheduler/actions/allocate"

func init() {
	framework.RegisterAction(allocate.New())
	// framework.RegisterAction(removed.New())
}
"""
ALLOCATE = """
func (alloc *Action) Name() string {
	return "allocate"
}
func parse() {
	arguments.GetBool(&alloc.cache, conf.CacheKey)
	framework.GetArgOfActionFromConf(c, "other").GetInt(&alloc.n, "foreign")
}
"""
PLUGINS = """
import (
	named "volcano.sh/volcano/pkg/scheduler/plugins/two-words"
)

func init() {
	framework.RegisterPluginBuilder(named.PluginName, named.New)
}
"""
PLUGIN = """
const (
	PluginName = "two-words"
	weight     = "two.weight"
	resources  = "two.resources"
	prefix     = resources + "."
	zone       = "two.zone."
)

/* an example:
   args.GetInt(&x, "two.commented")
*/
func New(args framework.Arguments) framework.Plugin {
	args.GetInt(&x.weight, weight)
	op.pluginArguments.GetFloat64(&x.factor, "two.factor")
	names, ok := args[resources].(string)
	key := prefix + name
	args.GetInt(&x.resource, key)
	list, ok := framework.Get[[]string](args, "two.list")
	limit, ok := framework.Get[int64](args, "two.limit")
	shape, ok := framework.Get[map[string]T](args, "two.shape")
	if period, ok := args["two.period"]; ok {
		parse(period.(string))
	}
	if mode, ok := args["two.mode"]; ok {
		text, isText := mode.(string)
	}
	if any, ok := args["two.any"]; ok {
		decode(any)
	}
	for k, v := range args {
		if strings.Contains(k, zone) {
			zones[k] = v.(string)
		}
	}
	other.GetInt(&x.weight, "not.arguments")
}
"""


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    files = {
        "go.mod": "require (\n\tk8s.io/kubernetes v1.35.3\n)\n",
        "pkg/scheduler/conf/scheduler_conf.go": CONFIGURATION,
        "pkg/scheduler/conf/constants.go": CONSTANTS,
        "pkg/scheduler/actions/factory.go": ACTIONS,
        "pkg/scheduler/actions/allocate/allocate.go": ALLOCATE,
        "pkg/scheduler/plugins/factory.go": PLUGINS,
        "pkg/scheduler/plugins/two-words/plugin.go": PLUGIN,
        "pkg/scheduler/plugins/two-words/plugin_test.go": 'args.GetInt(&x, "two.test")\n',
    }
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


def test_fields_actions_and_plugins_are_those_of_the_sources(tree: Path) -> None:
    found = record("v1.99.0", tree)
    assert (found["version"], found["kubernetes"]) == ("v1.99.0", "1.35")
    assert found["fields"] == {
        "file": {"actions": "string", "tiers": "list", "metrics": "strings"},
        "tier": {"plugins": "list"},
        "action": {"name": "string"},
        "plugin": {"name": "string", "enabledVictim": "bool", "arguments": "map"},
    }
    assert found["actions"] == {
        "allocate": {"cacheEnable": {"type": "bool", "otherwise": "ignored"}}
    }
    assert list(found["plugins"]) == ["two-words"]


def test_each_argument_has_its_type_and_what_another_type_does(tree: Path) -> None:
    arguments = record("v1.99.0", tree)["plugins"]["two-words"]
    assert {key: (each["type"], each["otherwise"]) for key, each in arguments.items()} == {
        "two.any": ("any", "ignored"),
        "two.factor": ("float", "ignored"),
        "two.limit": ("number", "exits"),
        "two.list": ("list", "exits"),
        "two.mode": ("string", "ignored"),
        "two.period": ("string", "exits"),
        "two.resources": ("string", "ignored"),
        "two.resources.*": ("int", "ignored"),
        "two.shape": ("map", "exits"),
        "two.weight": ("int", "ignored"),
        "two.zone.*": ("string", "exits"),
    }
