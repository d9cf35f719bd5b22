"""Rules about configurations of Volcano's scheduler, and of one scheduler given to another."""

from __future__ import annotations

from typing import Final

from .rule import BOTH, ERRORS, WARNINGS, Rule, configuration

_REFUSED: Final = (
    "Volcano refuses the whole file, logs an error and continues with its previous configuration; "
    "at its start with the one that is built in. With --disable-default-scheduler-config it exits."
)


def _volcano(
    plugins: str = "[{name: predicates}]", actions: str = "enqueue, allocate", more: str = ""
) -> str:
    return f'actions: "{actions}"\ntiers:\n- plugins: {plugins}\n{more}'


RULES: Final = (
    Rule(
        "OtherScheduler",
        "The file is in another scheduler's format",
        "kube-scheduler reads a KubeSchedulerConfiguration, Volcano's vc-scheduler a file with "
        "actions and tiers. Neither reads the other's: kube-scheduler exits, vc-scheduler keeps "
        "its built-in configuration.",
        "Write the file in the format of the scheduler that reads it.",
        ERRORS,
        configuration("leaderElection: {resourceName: mine}\nprofiles: [{schedulerName: mine}]\n"),
        flags=("--for", "volcano"),
    ),
    Rule(
        "VolcanoUnknownAction",
        "Volcano does not have this action",
        f"actions is one string with names and commas. For an unknown or empty name, {_REFUSED}",
        "Correct the name, or use a version of Volcano that has the action.",
        ERRORS,
        _volcano(actions="enqueue, alocate, allocate"),
    ),
    Rule(
        "VolcanoInvalidType",
        "A field of Volcano's configuration has the wrong type",
        f"The value cannot be decoded. {_REFUSED}",
        "Write a value of the type that the message names.",
        ERRORS,
        _volcano('[{name: predicates, enablePredicate: "true"}]'),
    ),
    Rule(
        "VolcanoUnknownPlugin",
        "Volcano does not have this plugin",
        "Volcano logs an error in each session and runs without the plugin. A plugin of your own "
        "has to be loaded with --plugins-dir.",
        "Correct the name, or use a version of Volcano that has the plugin.",
        WARNINGS,
        _volcano("[{name: predicates}, {name: bin-pack}]"),
    ),
    Rule(
        "VolcanoUnknownField",
        "Volcano ignores this field",
        "Volcano decodes its file without strictness, so a misspelt or misplaced field has no "
        "effect and no message. The names are not regular: enablePredicate, but enabledVictim.",
        "Correct or move the field as the message describes.",
        WARNINGS,
        _volcano("[{name: predicates, enabledPredicate: false}]"),
    ),
    Rule(
        "VolcanoUnknownArgument",
        "The plugin or action does not read this argument",
        "Unknown arguments have no effect and no message.",
        "Correct the name; the message lists the arguments that are read.",
        WARNINGS,
        _volcano("[{name: predicates}, {name: binpack, arguments: {binpack.wieght: 5}}]"),
    ),
    Rule(
        "VolcanoArgumentType",
        "An argument has the wrong type",
        "Most plugins log a warning and use their default. Some end vc-scheduler, which restarts "
        "and ends again: those that convert arguments with framework.Get, and those that expect a "
        "string without checking it.",
        "Write a value of the type that the message names.",
        BOTH,
        _volcano("[{name: predicates, arguments: {volumebinding.weight: high}}]"),
    ),
    Rule(
        "VolcanoConflict",
        "Two plugins exclude each other",
        "For drf with enableHierarchy beside proportion in one tier, Volcano refuses the file and "
        "keeps its previous or built-in configuration. capacity and proportion both limit queues, "
        "and Volcano's documentation excludes their combination.",
        "Remove one of the two.",
        BOTH,
        _volcano("[{name: predicates}, {name: drf, enableHierarchy: true}, {name: proportion}]"),
    ),
    Rule(
        "VolcanoDuplicate",
        "An action, a plugin or a key is repeated",
        "An action that is named twice runs twice in each session. Of a plugin that is listed "
        "twice, both tiers use the last entry's arguments. Of a key that is repeated, the last "
        "one counts; of an action in configurations, the first.",
        "Remove one of them.",
        WARNINGS,
        _volcano("[{name: predicates}, {name: predicates}]"),
    ),
    Rule(
        "VolcanoIncomplete",
        "A part of Volcano's configuration has no effect without another one",
        "Without allocate no Pod that requests resources is placed. Without predicates, nodes are "
        "not filtered by taints, affinity, ports and volumes. usage needs metrics.type, and "
        "configurations the name of an action.",
        "Add what is missing, or remove what has no effect.",
        WARNINGS,
        _volcano("[{name: predicates}, {name: usage, arguments: {thresholds: {cpu: 80}}}]"),
    ),
)
