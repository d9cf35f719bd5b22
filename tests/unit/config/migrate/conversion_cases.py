"""Old configurations, and the plugins that ran with each of them."""

from __future__ import annotations

from .conversions import (
    AGENT_SCHEDULER,
    AGENTS,
    ALL_OFF,
    ALPHA_SCORES,
    BETA_SCORES,
    CLASSIC,
    CPU,
    DEMO,
    FILTERS,
    LEAST,
    LOAD,
    MANDATORY,
    MOST,
    RATIO,
    SECOND,
    SHAPE,
    THREE,
    V1_SCORES,
    Case,
    Ran,
    component,
    policy,
    predicates,
    priorities,
    profile,
    sets,
    strategy,
)

CASES: dict[str, Case] = {
    "v1beta2: nothing": Case(component("v1beta2"), (Ran(),)),
    "v1beta1: nothing": Case(component("v1beta1"), (Ran(),)),
    "v1alpha2: nothing": Case(component("v1alpha2"), (Ran(scores=ALPHA_SCORES),)),
    "v1alpha1: nothing": Case(component("v1alpha1"), (Ran(scores=ALPHA_SCORES),)),
    "v1beta3: nothing": Case(component("v1beta3"), (Ran(scores=V1_SCORES),)),
    "v1: nothing": Case(component("v1"), (Ran(scores=V1_SCORES),)),
    "v1beta2: image locality alone": Case(
        DEMO,
        (Ran("TaintToleration", "ImageLocality=10", "", "", later=False),),
    ),
    "v1beta2: a second scheduler": Case(SECOND, (Ran(),)),
    "v1beta2: three profiles": Case(
        THREE,
        (
            Ran(
                scores=BETA_SCORES.replace("TaintToleration=1", "")
                + " MyCustomPluginA=1 MyCustomPluginB=1"
            ),
            Ran(),
            Ran(),
        ),
        own=False,
    ),
    "v1beta2: load of nodes": Case(
        LOAD,
        (
            Ran(
                FILTERS + " Dynamic",
                BETA_SCORES + " Dynamic=3",
                config={"Dynamic": {"policyConfigPath": "/etc/kubernetes/policy.yaml"}},
            ),
        ),
        own=False,
    ),
    "v1beta2: one weight": Case(
        profile("v1beta2", score=sets("NodeAffinity=5")),
        (Ran(scores=BETA_SCORES.replace("NodeAffinity=1", "NodeAffinity=5")),),
    ),
    "v1beta2: a default listed without weight": Case(
        profile("v1beta2", score=sets("TaintToleration PodTopologySpread")),
        (Ran(scores=BETA_SCORES.replace("Spread=2", "Spread=1")),),
    ),
    "v1beta2: the same weight as today": Case(
        profile("v1beta2", score=sets("TaintToleration=3 NodeAffinity=2 InterPodAffinity=2")),
        (Ran(scores=V1_SCORES),),
    ),
    "v1beta2: some off": Case(
        profile("v1beta2", score=sets(disabled="TaintToleration ImageLocality")),
        (Ran(scores="NodeResourcesBalancedAllocation=1 InterPodAffinity=1 NodeResourcesFit=1 "
             "NodeAffinity=1 PodTopologySpread=2"),),
    ),
    "v1beta2: all scores off, one back": Case(
        profile("v1beta2", preScore=ALL_OFF, score=sets("NodeResourcesFit=7", "*")),
        (Ran(scores="NodeResourcesFit=7"),),
    ),
    "v1beta2: no preemption": Case(
        profile("v1beta2", postFilter=sets(disabled="DefaultPreemption")),
        (Ran(post_filters=""),),
    ),
    "v1beta2: own binder after the default one": Case(
        profile("v1beta2", bind=sets("MyBinder")),
        (Ran(binders="DefaultBinder MyBinder"),),
        own=False,
    ),
    "v1beta2: own binder before the default one": Case(
        profile("v1beta2", bind=sets("MyBinder DefaultBinder", "DefaultBinder")),
        (Ran(binders="MyBinder DefaultBinder"),),
        own=False,
    ),
    "v1beta2: no volume zones": Case(
        profile("v1beta2", filter=sets(disabled="VolumeZone")),
        (Ran(FILTERS.replace("VolumeZone ", "")),),
    ),
    "v1beta2: most allocated": Case(
        profile("v1beta2", config={"NodeResourcesFit": strategy("MostAllocated", CPU)}),
        (Ran(config={"NodeResourcesFit": strategy("MostAllocated", CPU)}),),
    ),
    "v1beta2: limits of cloud volumes": Case(
        profile("v1beta2", filter=sets("EBSLimits", "GCEPDLimits AzureDiskLimits")), (Ran(),)
    ),
    "v1beta1: most allocated": Case(
        profile("v1beta1", score=sets(f"{MOST}=1", LEAST)),
        (Ran(config={"NodeResourcesFit": strategy("MostAllocated")}),),
    ),
    "v1beta1: most allocated, with weights": Case(
        profile(
            "v1beta1",
            config={MOST: {"resources": CPU}, "NodeResourcesFit": {"ignoredResources": ["a/b"]}},
            score=sets(f"{MOST}=5", LEAST),
        ),
        (
            Ran(
                scores=BETA_SCORES.replace("Fit=1", "Fit=5"),
                config={
                    "NodeResourcesFit": {
                        **strategy("MostAllocated", CPU), "ignoredResources": ["a/b"],
                    }
                },
            ),
        ),
    ),
    "v1beta1: least allocated, with weights": Case(
        profile("v1beta1", config={LEAST: {"resources": CPU}}),
        (Ran(config={"NodeResourcesFit": strategy("LeastAllocated", CPU)}),),
    ),
    "v1beta1: ratio": Case(
        profile(
            "v1beta1",
            config={RATIO: {"shape": SHAPE, "resources": CPU}},
            score=sets(f"{RATIO}=4", LEAST),
        ),
        (
            Ran(
                scores=BETA_SCORES.replace("Fit=1", "Fit=4"),
                config={"NodeResourcesFit": strategy(RATIO, CPU, SHAPE)},
            ),
        ),
    ),
    "v1beta1: no score for resources": Case(
        profile("v1beta1", score=sets(disabled=LEAST)),
        (Ran(scores=BETA_SCORES.replace("NodeResourcesFit=1 ", "")),),
    ),
    "v1beta1: labels that nodes must have": Case(
        profile(
            "v1beta1",
            config={"NodeLabel": {"presentLabels": ["zone"], "absentLabels": ["retiring"]}},
            filter=sets("NodeLabel"),
        ),
        (Ran(config={"NodeAffinity": {"addedAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
                {"matchExpressions": [
                    {"key": "zone", "operator": "Exists"},
                    {"key": "retiring", "operator": "DoesNotExist"},
                ]},
            ]},
        }}}),),
    ),
    "v1beta1: default constraints without a type": Case(
        profile("v1beta1", config={"PodTopologySpread": {"defaultConstraints": [
            {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"},
        ]}}),
        (Ran(config={"PodTopologySpread": {"defaultingType": "List", "defaultConstraints": [
            {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"},
        ]}}),),
    ),
    "v1beta1: preemption disabled": Case(
        component("v1beta1", disablePreemption=True), (Ran(post_filters=""),)
    ),
    "v1alpha2: Services are not spread": Case(
        profile(
            "v1alpha2",
            preScore=sets(disabled="DefaultPodTopologySpread"),
            score=sets(disabled="DefaultPodTopologySpread"),
        ),
        (Ran(scores=ALPHA_SCORES, config={"PodTopologySpread": {"defaultingType": "List"}}),),
    ),
    "v1beta2: no volume limits": Case(
        profile("v1beta2", filter=sets(disabled="NodeVolumeLimits")),
        (Ran(FILTERS.replace("NodeVolumeLimits ", "")),),
    ),
    "v1beta3: multiPoint": Case(
        profile("v1beta3", multiPoint=sets("ImageLocality=9", "NodeResourcesBalancedAllocation")),
        (Ran(scores=V1_SCORES.replace("NodeResourcesBalancedAllocation=1 ", "")
             .replace("ImageLocality=1", "ImageLocality=9")),),
    ),
    "v1beta3: multiPoint closed": Case(
        profile("v1beta3", multiPoint=sets(
            "PrioritySort DefaultBinder NodeResourcesFit=2 TaintToleration", "*")),
        (Ran("NodeResourcesFit TaintToleration", "NodeResourcesFit=2 TaintToleration=1", "", "",
             later=False),),
    ),
    "v1beta3: no scores": Case(
        profile("v1beta3", preScore=ALL_OFF, score=ALL_OFF), (Ran(scores=""),)
    ),
    "v1alpha1: provider": Case(
        component("v1alpha1", algorithmSource={"provider": "ClusterAutoscalerProvider"}),
        (Ran(scores=ALPHA_SCORES, config={"NodeResourcesFit": strategy("MostAllocated")}),),
    ),
    "v1alpha1: fields at the top": Case(
        component(
            "v1alpha1",
            schedulerName="mine",
            hardPodAffinitySymmetricWeight=7,
            bindTimeoutSeconds=30,
            disablePreemption=True,
            plugins={"score": sets("ImageLocality=3", "ImageLocality")},
        ),
        (
            Ran(
                scores=ALPHA_SCORES.replace("ImageLocality=1", "ImageLocality=3"),
                post_filters="",
                config={
                    "InterPodAffinity": {"hardPodAffinityWeight": 7},
                    "VolumeBinding": {"bindTimeoutSeconds": 30},
                },
            ),
        ),
    ),
    "v1alpha1: what was called postFilter": Case(
        component("v1alpha1", plugins={"postFilter": sets(disabled="TaintToleration"),
                                       "score": sets(disabled="TaintToleration")}),
        (Ran(scores=ALPHA_SCORES.replace("TaintToleration=1 ", "")),),
    ),
    "v1alpha1: a Policy": Case(AGENT_SCHEDULER, (Ran(),), policy=AGENTS),
    "Policy: nothing": Case(policy(), (Ran(),)),
    "Policy: empty lists": Case(
        policy(predicates=[], priorities=[]), (Ran(MANDATORY, "", volumes="", later=False),)
    ),
    "Policy: nulls": Case(policy(predicates=None, priorities=None), (Ran(),)),
    "Policy: the classic": Case(
        CLASSIC,
        (
            Ran(
                f"{MANDATORY} NodePorts NodeResourcesFit VolumeRestrictions VolumeZone "
                "NodeAffinity NodeName",
                "NodeResourcesFit=1 NodeResourcesBalancedAllocation=1 PodTopologySpread=1",
                volumes="",
                later=False,
            ),
        ),
    ),
    "Policy: general predicates only": Case(
        policy(predicates=predicates("GeneralPredicates", "CheckVolumeBinding")),
        (
            Ran(
                f"{MANDATORY} NodeResourcesFit NodeName NodePorts NodeAffinity VolumeBinding",
                later=False,
            ),
        ),
    ),
    "Policy: every volume count": Case(
        policy(predicates=predicates(
            "MaxEBSVolumeCount", "MaxGCEPDVolumeCount", "MaxAzureDiskVolumeCount",
            "MaxCinderVolumeCount", "MaxCSIVolumeCountPred")),
        (Ran(f"{MANDATORY} NodeVolumeLimits", volumes="", later=False),),
    ),
    "Policy: packing": Case(
        policy(priorities=priorities(MostRequestedPriority=8, ImageLocalityPriority=2)),
        (
            Ran(
                scores="NodeResourcesFit=8 ImageLocality=2",
                config={"NodeResourcesFit": strategy("MostAllocated")},
            ),
        ),
    ),
    "Policy: spreading by constraints only": Case(
        policy(priorities=priorities(EvenPodsSpreadPriority=4)),
        (
            Ran(
                scores="PodTopologySpread=4",
                config={"PodTopologySpread": {"defaultingType": "List"}},
            ),
        ),
    ),
    "Policy: both ways of spreading": Case(
        policy(priorities=priorities(SelectorSpreadPriority=9, EvenPodsSpreadPriority=4)),
        (Ran(scores="PodTopologySpread=4"),),
    ),
    "Policy: ratio": Case(
        policy(
            priorities=[
                {
                    "name": "Mine", "weight": 2,
                    "argument": {"requestedToCapacityRatioArguments": {
                        "shape": SHAPE, "resources": CPU}},
                }
            ]
        ),
        (
            Ran(
                scores="NodeResourcesFit=2",
                config={"NodeResourcesFit": strategy(RATIO, CPU, SHAPE)},
            ),
        ),
    ),
    "Policy: labels that nodes must have": Case(
        policy(predicates=[
            {"name": "MatchNodeSelector"},
            {"name": "Zone", "argument": {"labelsPresence": {
                "labels": ["zone"], "presence": True}}},
            {"name": "Stays", "argument": {"labelsPresence": {"labels": ["retiring"]}}},
        ]),
        (
            Ran(
                f"{MANDATORY} NodeAffinity",
                volumes="",
                later=False,
                config={"NodeAffinity": {"addedAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
                        {"matchExpressions": [
                            {"key": "zone", "operator": "Exists"},
                            {"key": "retiring", "operator": "DoesNotExist"},
                        ]},
                    ]},
                }}},
            ),
        ),
    ),
}  # fmt: skip
