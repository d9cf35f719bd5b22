"""Rules about extenders: the cost of their calls, and the effect of their outages."""

from __future__ import annotations

from typing import Final

from .rule import ERRORS, WARNINGS, Rule, configuration, extender, own

_AGENT: Final = "agent:\n  policies:\n  - name: foo\n"

RULES: Final = (
    Rule(
        "NeverCalled",
        "An extender has no verb, or no URL that can be called",
        "kube-scheduler calls an extender only for the verbs that are set, and only at a urlPrefix "
        "that begins with http:// or https://.",
        "Set filterVerb, prioritizeVerb, preemptVerb or bindVerb and a whole urlPrefix, or remove "
        "the extender.",
        WARNINGS,
        extender("nodeCacheCapable: true"),
    ),
    Rule(
        "ExtenderOfAllProfiles",
        "kube-scheduler calls the extender for the Pods of all profiles",
        "Extenders do not belong to a profile. Every Pod waits for this one, even the Pods of "
        "profiles that do not need it.",
        "Limit it with managedResources, or run the profile in a scheduler of its own.",
        WARNINGS,
        configuration(
            "profiles:\n- schedulerName: default-scheduler\n- schedulerName: packed\n"
            "extenders:\n- urlPrefix: https://extender.example.com\n  filterVerb: filter\n"
            "  httpTimeout: 1s\n  ignorable: true\n  nodeCacheCapable: true\n"
            "  tlsConfig: {caFile: /etc/ca.pem}\n"
        ),
    ),
    Rule(
        "UnverifiedTLS",
        "kube-scheduler does not verify the certificate of an extender",
        "With enableHTTPS and without a CA, any server that answers at this address decides where "
        "Pods run.",
        "Set tlsConfig.caFile or tlsConfig.caData.",
        WARNINGS,
        extender(
            "enableHTTPS: true\nfilterVerb: filter\nhttpTimeout: 1s\nignorable: true\n"
            "nodeCacheCapable: true"
        ),
    ),
    Rule(
        "WholeNodesOnTheWire",
        "Every call carries whole Node objects",
        "Without nodeCacheCapable kube-scheduler sends all candidate nodes as objects of 5 to 20 "
        "kB each. In a large cluster this takes most of the scheduler's time.",
        "Set nodeCacheCapable: true if the extender works with the names of nodes.",
        WARNINGS,
        extender("filterVerb: filter\nhttpTimeout: 1s\nignorable: true"),
    ),
    Rule(
        "NotIgnorable",
        "No Pod is scheduled while the extender does not answer",
        "kube-scheduler does not ignore errors of this extender, so its outage stops scheduling.",
        "Set ignorable: true, or limit the extender with managedResources, unless it must decide.",
        WARNINGS,
        extender("filterVerb: filter\nhttpTimeout: 1s\nnodeCacheCapable: true"),
    ),
    Rule(
        "LongTimeout",
        "A call of the extender may take long, and all Pods wait",
        "kube-scheduler schedules one Pod at a time. While an extender hangs, each Pod waits for "
        "the whole timeout, for each verb.",
        "Set httpTimeout to a second or less.",
        WARNINGS,
        extender("filterVerb: filter\nhttpTimeout: 30s\nignorable: true\nnodeCacheCapable: true"),
    ),
    Rule(
        "ShortTimeout",
        "The timeout is shorter than an agent may need",
        "An agent's filter may wait 50 ms for the update of a changed node. kube-scheduler "
        "ignores an ignorable extender that is late, and then the filter has no effect.",
        "Set a timeout of 100ms or more.",
        WARNINGS,
        own("SchedulerExtender", "mine", f"timeout: 20ms\n{_AGENT}"),
    ),
    Rule(
        "ServiceName",
        "The control plane's scheduler cannot resolve the name of a Service",
        "Static Pods use the DNS of their node, which does not know the names of the cluster.",
        "Use an address that the nodes can resolve, or run the extender as an agent.",
        WARNINGS,
        own(
            "SchedulerExtender",
            "mine",
            "url: http://extender.kube-system.svc:8080\nverbs: {filter: filter}\n"
            "timeout: 1s\nignorable: true\nnodeCacheCapable: true",
        ),
    ),
    Rule(
        "CalledTwice",
        "Two extenders have the same URL",
        "kube-scheduler calls the server twice for each Pod, and its score counts twice.",
        "Remove one of the two.",
        WARNINGS,
        own(
            "SchedulerExtender",
            "first",
            "url: http://192.0.2.1\nverbs: {filter: filter}\ntimeout: 1s\nignorable: true\n"
            "nodeCacheCapable: true",
        ),
        own(
            "SchedulerExtender",
            "second",
            "url: http://192.0.2.1\nverbs: {filter: filter}\ntimeout: 1s\nignorable: true\n"
            "nodeCacheCapable: true",
        ),
    ),
    Rule(
        "AlreadyTaken",
        "Two extenders claim a resource, a port or the verb bind, which only one can have",
        "kube-scheduler rejects two extenders that bind or that manage the same resource, and two "
        "agents cannot listen on one port.",
        "Remove the resource, the port or the verb from one of the two.",
        ERRORS,
        own("SchedulerExtender", "first", f"{_AGENT}  port: 9000\n"),
        own("SchedulerExtender", "second", f"{_AGENT}  port: 9000\n"),
    ),
    Rule(
        "UnknownPolicy",
        "The extender has no policy of this name",
        "The operator rejects an agent with a policy that is not installed.",
        "Use a policy of docs/policies.md, or install the package that has it.",
        ERRORS,
        own("SchedulerExtender", "mine", "agent:\n  policies:\n  - name: load-awar"),
    ),
    Rule(
        "InvalidArguments",
        "The arguments of a policy are invalid",
        "The agent would not start, so the operator rejects the SchedulerExtender.",
        "Correct the arguments as the message describes; docs/policies.md lists them.",
        ERRORS,
        own(
            "SchedulerExtender",
            "mine",
            "agent:\n  policies:\n  - name: foo\n    arguments: {unknown: 1}",
        ),
    ),
)
