"""Rules about lists of plugins that kube-scheduler accepts but that rarely do what is intended."""

from __future__ import annotations

from typing import Final

from .rule import WARNINGS, Rule, configuration, profile

RULES: Final = (
    Rule(
        "SafetyFilterOff",
        "A filter that protects nodes and Pods is disabled",
        "Without NodeResourcesFit, Pods are bound to full nodes; without TaintToleration, to "
        "tainted ones; without NodePorts, to nodes whose port is in use, and so on. The kubelet "
        "rejects such Pods, or they never start.",
        "Enable the plugin at filter. To change only its score, disable it at score.",
        WARNINGS,
        profile("plugins: {filter: {disabled: [{name: NodeResourcesFit}]}}"),
    ),
    Rule(
        "NotPrepared",
        "A plugin runs without the extension point that prepares its data",
        "Some plugins compute data in preFilter or preScore and read it in filter or score. "
        "Without it every Pod that reaches the plugin fails with an error.",
        "Enable the plugin at the earlier point as well, or at multiPoint instead of both.",
        WARNINGS,
        profile("plugins: {preScore: {disabled: [{name: TaintToleration}]}}"),
    ),
    Rule(
        "OutvotedPlugins",
        "A weight is so large that other plugins only break ties",
        "The smallest difference that the heavy plugin makes is larger than all other scores "
        "together. The other plugins cost time and never decide.",
        "Bring the weights closer together, or disable the plugins that never decide.",
        WARNINGS,
        profile("plugins: {multiPoint: {enabled: [{name: ImageLocality, weight: 2000}]}}"),
    ),
    Rule(
        "OutvotedStrategy",
        "The default spreading works against MostAllocated",
        "NodeResourcesFit with MostAllocated packs Pods; PodTopologySpread spreads the same Pods "
        "by default, with a weight that is at least as large. Nodes do not become empty.",
        "Set defaultingType: List in the arguments of PodTopologySpread, or raise the weight of "
        "NodeResourcesFit.",
        WARNINGS,
        profile(
            "pluginConfig:\n- name: NodeResourcesFit\n  args:\n"
            "    scoringStrategy: {type: MostAllocated, resources: [{name: cpu, weight: 1}]}"
        ),
    ),
    Rule(
        "ImagesAlone",
        "ImageLocality is the only plugin that scores",
        "ImageLocality distinguishes nodes only by large images that some of them have. All other "
        "nodes have the same score, and one is chosen at random.",
        "Keep at least one other plugin at score, such as NodeResourcesFit.",
        WARNINGS,
        profile('plugins: {score: {disabled: [{name: "*"}], enabled: [{name: ImageLocality}]}}'),
    ),
    Rule(
        "NegativeWeight",
        "A plugin has a negative weight",
        "kube-scheduler accepts a negative weight and prefers the nodes that the plugin scores "
        "lowest.",
        "Write a positive weight; to switch the plugin off, list it under disabled.",
        WARNINGS,
        profile("plugins: {multiPoint: {enabled: [{name: ImageLocality, weight: -1}]}}"),
    ),
    Rule(
        "UselessWeight",
        "A weight stands where no plugin scores",
        "Only score uses weights. kube-scheduler ignores a weight at another extension point.",
        "Remove the weight, or move the entry to score or multiPoint.",
        WARNINGS,
        profile(
            "plugins: {filter: {disabled: [{name: NodePorts}], enabled: [{name: NodePorts, "
            "weight: 5}]}}"
        ),
    ),
    Rule(
        "WeightReset",
        "An entry without weight replaces a higher default weight by 1",
        "Some default plugins have a weight of 2 or 3. Listed again without weight, they have 1.",
        "Set the weight that the message names, or weight: 1 if that is intended.",
        WARNINGS,
        profile("plugins: {score: {enabled: [{name: TaintToleration}]}}"),
    ),
    Rule(
        "UselessDisabled",
        "A disabled entry has no effect",
        "kube-scheduler accepts any name under disabled, even that of a plugin that does not "
        "exist, never runs at that point, or is off anyway. What the entry should disable "
        "continues to run.",
        "Correct the name or the extension point, or remove the entry.",
        WARNINGS,
        profile("plugins: {score: {disabled: [{name: ImageLocalty}]}}"),
    ),
    Rule(
        "UnusedArguments",
        "Arguments belong to a plugin that does not run",
        "kube-scheduler accepts the arguments and never uses them.",
        "Enable the plugin, or remove its arguments.",
        WARNINGS,
        profile(
            "plugins: {multiPoint: {disabled: [{name: InterPodAffinity}]}}\n"
            "pluginConfig:\n- name: InterPodAffinity\n  args: {hardPodAffinityWeight: 5}"
        ),
    ),
    Rule(
        "NoNodeMatches",
        "addedAffinity of NodeAffinity selects no node",
        "A required node affinity without a term, or whose terms are empty, matches no node. "
        "kube-scheduler accepts it, and no Pod of the profile gets a node.",
        "Add a term with matchExpressions or matchFields, or remove the required affinity.",
        WARNINGS,
        profile(
            "pluginConfig:\n- name: NodeAffinity\n  args:\n    addedAffinity:\n"
            "      requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: []}"
        ),
    ),
    Rule(
        "UnnamedArguments",
        "Arguments have no plugin name",
        "kube-scheduler ignores an entry of pluginConfig without name.",
        "Write the name beside args: {name: PLUGIN, args: …}.",
        WARNINGS,
        profile("pluginConfig:\n- args: {hardPodAffinityWeight: 5}"),
    ),
    Rule(
        "RemovedLater",
        "A later Kubernetes removes a plugin or its extension point",
        "The configuration works now; the kube-scheduler of the named version rejects it, so the "
        "upgrade would leave the cluster without a scheduler.",
        "Remove the entry before the upgrade.",
        WARNINGS,
        profile("plugins: {reserve: {enabled: [{name: GangScheduling}]}}"),
        flags=("--feature-gates", "GangScheduling=true,GenericWorkload=true"),
    ),
    Rule(
        "SampledTooFew",
        "percentageOfNodesToScore is below the minimum that kube-scheduler itself uses",
        "kube-scheduler stops filtering after this share of nodes and scores only those, so Pods "
        "get worse nodes. Its own adaptive value is never below 5.",
        "Set 0 for the adaptive value, or 5 or more.",
        WARNINGS,
        configuration("percentageOfNodesToScore: 1\n"),
    ),
    Rule(
        "OddSchedulerName",
        "A schedulerName has an invisible or typographic character",
        "The name looks like another one. Pods that write it with ordinary characters stay "
        "Pending, because no scheduler serves their name.",
        "Type the name again with ordinary characters.",
        WARNINGS,
        configuration(
            "leaderElection: {resourceName: my-scheduler}\n"
            "profiles:\n- schedulerName: “my-scheduler”\n"
        ),
    ),
)
