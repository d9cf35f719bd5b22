"""Rules about fields, values, profiles and extenders: errors with which no scheduler starts."""

from __future__ import annotations

from typing import Final

from .rule import ERRORS, Rule, configuration, extender, own, profile

RULES: Final = (
    Rule(
        "UnknownField",
        "The field does not exist here",
        "kube-scheduler decodes strictly: one unknown field keeps it from starting. Often the "
        "field exists in another place, in another version, or as a flag.",
        "Move or rename the field as the message describes, or remove it.",
        ERRORS,
        configuration("leaderElect: false\n"),
    ),
    Rule(
        "InvalidType",
        "The value has another type than the field",
        "Decoding fails, and kube-scheduler exits. YAML decides the type: true and 16 without "
        'quotes are a boolean and a number, "true" and "16" are strings.',
        "Write a value of the type that the message names.",
        ERRORS,
        configuration('parallelism: "16"\n'),
    ),
    Rule(
        "InvalidValue",
        "The value has the right type but cannot be used",
        "The field accepts only some values: a duration with a unit, a number in a range, one of "
        "a list of words, base64.",
        "Write a value that the message describes.",
        ERRORS,
        configuration("leaderElection: {leaseDuration: 15}\n").replace("15}", "15 seconds}"),
    ),
    Rule(
        "MissingField",
        "A required field is missing",
        "The API server rejects an object without this field.",
        "Set the field.",
        ERRORS,
        own("SecondaryScheduler", "mine", "profiles:\n- plugins: {}"),
    ),
    Rule(
        "InvalidConfiguration",
        "A setting of the whole scheduler is out of range",
        "kube-scheduler validates the configuration after decoding and exits.",
        "Write a value in the range that the message names, or remove the field to use its "
        "default.",
        ERRORS,
        configuration("parallelism: 0\n"),
    ),
    Rule(
        "InvalidLeaderElection",
        "The settings of leader election contradict each other",
        "leaseDuration must be greater than renewDeadline, and renewDeadline greater than 1.2 "
        "times retryPeriod; the only resourceLock is leases. kube-scheduler exits at the latest "
        "when leader election begins.",
        "Correct the timings, or remove them: the defaults are 15s, 10s and 2s.",
        ERRORS,
        configuration("leaderElection: {leaseDuration: 5s}\n"),
    ),
    Rule(
        "InvalidProfile",
        "A profile is incomplete or contradicts another one",
        "All profiles share one queue, so they need the same queueSort plugin with the same "
        "arguments; each has exactly one queueSort and at least one bind plugin; with several "
        "profiles each needs a schedulerName.",
        "Correct the profile as the message describes.",
        ERRORS,
        profile('schedulerName: my-scheduler\nplugins: {bind: {disabled: [{name: "*"}]}}'),
    ),
    Rule(
        "UnknownPlugin",
        "kube-scheduler does not have this plugin",
        "kube-scheduler exits when it creates the profile. The name is misspelt, the plugin was "
        "removed from or added to another version, or it belongs to another image.",
        "Correct the name. If the scheduler runs an image with more plugins, use --custom-image.",
        ERRORS,
        profile("plugins: {score: {enabled: [{name: ImageLocalty}]}}"),
    ),
    Rule(
        "WrongExtensionPoint",
        "The plugin does not work at this extension point",
        "A plugin implements some of the extension points. kube-scheduler exits if it is enabled "
        "at another one.",
        "List the plugin at a point that the message names, or at multiPoint, which means all "
        "points that it implements.",
        ERRORS,
        profile("plugins: {filter: {enabled: [{name: ImageLocality}]}}"),
    ),
    Rule(
        "Duplicate",
        "A name occurs twice where it must be unique",
        "schedulerNames, plugins of one list, entries of pluginConfig, managed resources and "
        "environment variables are identified by name, so a second one is an error.",
        "Remove one of the two, or rename it.",
        ERRORS,
        configuration("profiles:\n- schedulerName: a\n- schedulerName: a\n"),
    ),
    Rule(
        "InvalidPluginArgs",
        "The arguments of a plugin are invalid",
        "kube-scheduler validates the arguments of its own plugins and exits.",
        "Correct the value as the message describes.",
        ERRORS,
        profile("pluginConfig:\n- name: InterPodAffinity\n  args: {hardPodAffinityWeight: 101}"),
    ),
    Rule(
        "InvalidExtender",
        "An extender is invalid",
        "kube-scheduler exits, or the operator rejects the SchedulerExtender: for example, with a "
        "negative weight, with two extenders that bind, or with TLS settings that contradict "
        "each other.",
        "Correct the extender as the message describes.",
        ERRORS,
        extender("prioritizeVerb: prioritize\nweight: -1"),
    ),
)
