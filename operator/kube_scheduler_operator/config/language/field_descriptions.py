"""Descriptions of the fields of KubeSchedulerConfiguration, for editors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

DESCRIPTIONS: Final[Mapping[str, str]] = {
    "": "Configuration of kube-scheduler, which it reads with --config.",
    "parallelism": "Number of goroutines that filter and score nodes. Greater than 0.",
    "leaderElection": "Leader election between replicas of this scheduler.",
    "leaderElection.leaderElect": "Whether only one of several replicas schedules.",
    "leaderElection.leaseDuration": "Time after which other replicas take over from a leader "
    "that does not renew its Lease. Greater than renewDeadline.",
    "leaderElection.renewDeadline": "Time after which a leader that cannot renew its Lease stops. "
    "Greater than 1.2 times retryPeriod.",
    "leaderElection.retryPeriod": "Time between two attempts to get or renew the Lease.",
    "leaderElection.resourceLock": "Kind of object that is the lock. Only leases.",
    "leaderElection.resourceName": "Name of the Lease. Different schedulers need different Leases.",
    "leaderElection.resourceNamespace": "Namespace of the Lease.",
    "clientConnection": "Connection to the API server.",
    "clientConnection.kubeconfig": "Path of a kubeconfig. Empty: the ServiceAccount of the Pod. "
    "With a configuration file, kube-scheduler ignores the flag --kubeconfig.",
    "clientConnection.acceptContentTypes": "Accept header of requests.",
    "clientConnection.contentType": "Content type of requests.",
    "clientConnection.qps": "Requests per second.",
    "clientConnection.burst": "Requests that may exceed qps for a moment.",
    "enableProfiling": "Whether /debug/pprof is served.",
    "enableContentionProfiling": "Whether profiles include lock contention.",
    "percentageOfNodesToScore": "Share of nodes, in percent, after which kube-scheduler stops "
    "looking for more feasible ones. 0: adaptive, 50 to 5 by the size of the cluster.",
    "podInitialBackoffSeconds": "Seconds before the first retry of an unschedulable Pod.",
    "podMaxBackoffSeconds": "Maximum seconds between two retries of an unschedulable Pod.",
    "profiles": "Profiles of this scheduler. A Pod chooses one with spec.schedulerName.",
    "extenders": "HTTP servers that kube-scheduler calls for the Pods of all profiles.",
    "delayCacheUntilActive": "Whether only the leader watches objects. Saves memory of the other "
    "replicas; the next leader starts later.",
    "profiles[].schedulerName": "Name that Pods set in spec.schedulerName. Pods that name no "
    "scheduler have default-scheduler.",
    "profiles[].percentageOfNodesToScore": "The same for the Pods of this profile only.",
    "profiles[].plugins": "Plugins by extension point, merged with the default ones.",
    "profiles[].pluginConfig": "Arguments of plugins.",
    "profiles[].pluginConfig[].name": "Name of the plugin.",
    "profiles[].pluginConfig[].args": "Arguments of the plugin.",
    "enabled": "Plugins that are added after the default ones, or replace the default one of the "
    "same name.",
    "disabled": 'Default plugins that are removed. "*" removes all.',
    "plugin.name": "Name of the plugin.",
    "plugin.weight": "Factor of the plugin's score, where it scores. 0 means 1.",
    "multiPoint": "All extension points that a plugin implements. A list of a single extension "
    "point counts more.",
    "preEnqueue": "Plugins that can keep a Pod out of the active queue.",
    "queueSort": "The plugin that orders Pods in the queue. Exactly one, the same in all profiles.",
    "preFilter": "Plugins that prepare data for filter, or reject a Pod at once.",
    "filter": "Plugins that reject nodes.",
    "postFilter": "Plugins that run if no node is feasible, such as preemption.",
    "preScore": "Plugins that prepare data for score.",
    "score": "Plugins that rank the feasible nodes, by their weight.",
    "reserve": "Plugins that reserve resources before a Pod is bound.",
    "permit": "Plugins that delay or deny the binding of a Pod.",
    "preBind": "Plugins that work before a Pod is bound.",
    "bind": "Plugins that bind a Pod; the first one that handles it.",
    "postBind": "Plugins that are informed of a binding.",
    "placementGenerate": "Plugins that propose sets of nodes for a group of Pods.",
    "placementScore": "Plugins that rank sets of nodes for a group of Pods.",
    "podGroupPostFilter": "Plugins that run if a group of Pods does not fit.",
    "extenders[].urlPrefix": "URL of the extender, to which a verb is appended.",
    "extenders[].filterVerb": "Path of the call that rejects nodes. Empty: not called.",
    "extenders[].prioritizeVerb": "Path of the call that scores nodes. Empty: not called.",
    "extenders[].preemptVerb": "Path of the call that limits preemption. Empty: not called.",
    "extenders[].bindVerb": "Path of the call that binds Pods. Only one extender can have it.",
    "extenders[].weight": "Factor of the extender's score. Positive with prioritizeVerb.",
    "extenders[].enableHTTPS": "Whether the extender is called with HTTPS.",
    "extenders[].tlsConfig": "TLS settings of the calls.",
    "extenders[].tlsConfig.insecure": "Whether the extender's certificate is not verified.",
    "extenders[].tlsConfig.serverName": "Name that the extender's certificate must have.",
    "extenders[].tlsConfig.certFile": "Path of the client certificate.",
    "extenders[].tlsConfig.keyFile": "Path of the key of the client certificate.",
    "extenders[].tlsConfig.caFile": "Path of the CA that signed the extender's certificate.",
    "extenders[].tlsConfig.certData": "Client certificate, PEM in base64.",
    "extenders[].tlsConfig.keyData": "Key of the client certificate, PEM in base64.",
    "extenders[].tlsConfig.caData": "CA of the extender's certificate, PEM in base64.",
    "extenders[].httpTimeout": "Maximum duration of a call. All Pods wait for it.",
    "extenders[].nodeCacheCapable": "Whether the extender knows nodes, so that calls carry only "
    "their names.",
    "extenders[].managedResources": "Resources that the extender manages. If set, it is called "
    "only for Pods that request one of them.",
    "extenders[].managedResources[].name": "Name of the resource.",
    "extenders[].managedResources[].ignoredByScheduler": "Whether NodeResourcesFit ignores it.",
    "extenders[].ignorable": "Whether scheduling continues if the extender does not answer.",
    "DefaultPreemption.minCandidateNodesPercentage": "Minimum share of nodes, in percent, that "
    "preemption examines.",
    "DefaultPreemption.minCandidateNodesAbsolute": "Minimum number of nodes that preemption "
    "examines.",
    "DynamicResources.filterTimeout": "Maximum time to filter one node.",
    "DynamicResources.bindingTimeout": "Maximum time to wait for the binding conditions of "
    "devices.",
    "InterPodAffinity.hardPodAffinityWeight": "Score of nodes for Pods whose required affinity "
    "selects this Pod.",
    "InterPodAffinity.ignorePreferredTermsOfExistingPods": "Whether preferred terms of running "
    "Pods are ignored, which is faster.",
    "NodeAffinity.addedAffinity": "Node affinity that all Pods of the profile have in addition.",
    "NodeResourcesBalancedAllocation.resources": "Resources whose use is balanced.",
    "NodeResourcesFit.ignoredResources": "Resources that are not checked.",
    "NodeResourcesFit.ignoredResourceGroups": "Groups of resources that are not checked: what "
    "precedes the slash.",
    "NodeResourcesFit.scoringStrategy": "How nodes are scored by the use of their resources.",
    "NodeResourcesFit.scoringStrategy.type": "LeastAllocated spreads, MostAllocated packs, "
    "RequestedToCapacityRatio follows a shape.",
    "NodeResourcesFit.scoringStrategy.resources": "Resources that count, with their weights.",
    "NodeResourcesFit.scoringStrategy.requestedToCapacityRatio": "The shape for type "
    "RequestedToCapacityRatio.",
    "PodTopologySpread.defaultConstraints": "Constraints of Pods that have none. Needs "
    "defaultingType List.",
    "PodTopologySpread.defaultingType": "System: spread over hosts and zones as a preference. "
    "List: defaultConstraints, also if that is empty.",
    "VolumeBinding.bindTimeoutSeconds": "Maximum seconds to wait for volumes to be bound.",
    "VolumeBinding.shape": "Scores of nodes by the use of their storage; needs a feature gate.",
    "shape[].utilization": "Use of the resource in percent.",
    "shape[].score": "Score at this use, 0 to 10.",
    "resources[].name": "Name of the resource.",
    "resources[].weight": "Weight of the resource, 1 to 100. 0 means 1.",
}  # fmt: skip
"""Path -> description; the fields of an argument begin with the plugin's name."""
