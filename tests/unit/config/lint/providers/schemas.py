"""JSON schemas of what providers take, written after the definitions that each one cites.

They have the fields of schedulers only, and allow no others.
"""

from __future__ import annotations

from typing import Any, Final


def _object(properties: dict[str, Any], *required: str) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }


def _list(items: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": items}


_TEXT: Final = {"type": "string", "minLength": 1}
_FREE: Final = {"type": "object"}
_TEXTS: Final = {"type": "object", "additionalProperties": _TEXT}

# MicrosoftDocs/azure-aks-docs at fb060ab, articles/aks/configure-aks-scheduler.md: its examples,
# because the CRD is not public.
AKS: Final = _object(
    {
        "apiVersion": {"const": "aks.azure.com/v1alpha1"},
        "kind": {"const": "SchedulerConfiguration"},
        "metadata": _object({"name": {"const": "upstream"}}, "name"),
        "spec": _object({"rawConfig": _TEXT}, "rawConfig"),
    },
    "apiVersion",
    "kind",
    "metadata",
    "spec",
)

# The EKS API 2017-11-01 as in botocore 1.44.8: KubeSchedulerConfigRequest, NodeResourcesFitConfig,
# ScoringStrategy, ResourceWeightList, ResourceWeight.
EKS: Final = _object(
    {
        "kubeSchedulerConfig": _object(
            {
                "nodeResourcesFit": _object(
                    {
                        "scoringStrategy": _object(
                            {
                                "type": {"enum": ["LeastAllocated", "MostAllocated"]},
                                "resources": {
                                    **_list(
                                        _object(
                                            {
                                                "name": {**_TEXT, "maxLength": 253},
                                                "weight": {
                                                    "type": "integer",
                                                    "minimum": 1,
                                                    "maximum": 100,
                                                },
                                            }
                                        )
                                    ),
                                    "maxItems": 100,
                                },
                            }
                        )
                    }
                )
            }
        )
    },
    "kubeSchedulerConfig",
)

# gardener/gardener at b312835, pkg/apis/core/v1beta1/types_shoot.go: KubeSchedulerConfig,
# KubernetesConfig, SchedulingProfile; kubeMaxPDVols is forbidden from Kubernetes 1.35 on.
GARDENER: Final = _object(
    {
        "spec": _object(
            {
                "kubernetes": _object(
                    {
                        "kubeScheduler": _object(
                            {
                                "profile": {"enum": ["balanced", "bin-packing"]},
                                "featureGates": {
                                    "type": "object",
                                    "additionalProperties": {"type": "boolean"},
                                },
                            }
                        )
                    },
                    "kubeScheduler",
                )
            },
            "kubernetes",
        )
    },
    "spec",
)

# k3s-io/docs at 0243496, docs/cli/server.md, and at 147c369, docs/installation/configuration.md.
K3S: Final = _object({"kube-scheduler-arg+": _list(_TEXT)}, "kube-scheduler-arg+")

# rancher/rke2-docs at 9477b7b, docs/reference/server_config.md, and docs/advanced.md for mounts.
RKE2: Final = _object(
    {
        "kube-scheduler-arg+": _list(_TEXT),
        "kube-scheduler-extra-mount+": _list({"type": "string", "pattern": "^/.+:/.+:ro$"}),
    },
    "kube-scheduler-arg+",
)

_KUBEADM_VOLUME: Final = _object(
    {
        "name": {"type": "string", "pattern": "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", "maxLength": 63},
        "hostPath": _TEXT,
        "mountPath": _TEXT,
        "readOnly": {"type": "boolean"},
        "pathType": {"enum": ["File"]},
    },
    "name",
    "hostPath",
    "mountPath",
)


def _kubeadm(version: str, arguments: dict[str, Any]) -> dict[str, Any]:
    return _object(
        {
            "apiVersion": {"const": f"kubeadm.k8s.io/{version}"},
            "kind": {"const": "ClusterConfiguration"},
            "scheduler": _object({"extraArgs": arguments, "extraVolumes": _list(_KUBEADM_VOLUME)}),
        },
        "apiVersion",
        "kind",
        "scheduler",
    )


# k8s.io/kubernetes 1.36.3, cmd/kubeadm/app/apis/kubeadm/v1beta4/types.go: ControlPlaneComponent,
# Arg, HostPathMount.
KUBEADM: Final = _kubeadm(
    "v1beta4", _list(_object({"name": _TEXT, "value": {"type": "string"}}, "name", "value"))
)
# k8s.io/kubernetes 1.36.3, cmd/kubeadm/app/apis/kubeadm/v1beta3/types.go: ControlPlaneComponent.
KUBEADM_BEFORE_1_31: Final = _kubeadm("v1beta3", _TEXTS)

# RFC 6902, as k8s.io/kubernetes 1.36.3, cmd/kubeadm/app/util/patches/patches.go reads it.
KUBEADM_PATCHES: Final = _list(
    _object(
        {"op": {"const": "add"}, "path": {"type": "string", "pattern": "^/spec/"}, "value": {}},
        "op",
        "path",
        "value",
    )
)

_TALOS_VOLUME: Final = _object(
    {"hostPath": _TEXT, "mountPath": _TEXT, "readonly": {"type": "boolean"}},
    "hostPath",
    "mountPath",
)
_TALOS_CONFIG: Final = {**_FREE, "not": {"required": ["apiVersion"]}}

# siderolabs/talos v1.12.0, pkg/machinery/config/types/v1alpha1: SchedulerConfig, VolumeMountConfig.
TALOS: Final = _object(
    {
        "cluster": _object(
            {
                "scheduler": _object(
                    {
                        "config": _TALOS_CONFIG,
                        "extraArgs": _TEXTS,
                        "extraVolumes": _list(_TALOS_VOLUME),
                    }
                )
            },
            "scheduler",
        )
    },
    "cluster",
)

# siderolabs/talos at ad88231, pkg/machinery/config/schemas/config.schema.json:
# k8s.KubeSchedulerConfigV1Alpha1. It is a patch, so `image` is that of the machine configuration.
TALOS_1_14: Final = _object(
    {
        "apiVersion": {"const": "v1alpha1"},
        "kind": {"const": "KubeSchedulerConfig"},
        "config": _TALOS_CONFIG,
        "extraArgs": {
            "type": "object",
            "additionalProperties": {"oneOf": [_TEXT, _list(_TEXT)]},
        },
    },
    "apiVersion",
    "kind",
)

# kubernetes-sigs/karpenter at 65fc694, pkg/operator/options/options.go: SchedulerConfiguration,
# validateDefaultConstraint.
KARPENTER: Final = _object(
    {
        "podTopologySpread": _object(
            {
                "defaultConstraints": _list(
                    _object(
                        {
                            "maxSkew": {"type": "integer", "minimum": 1},
                            "topologyKey": _TEXT,
                            "whenUnsatisfiable": {"enum": ["DoNotSchedule", "ScheduleAnyway"]},
                            "minDomains": {"type": "integer"},
                            "nodeAffinityPolicy": {"enum": ["Honor", "Ignore"]},
                            "nodeTaintsPolicy": {"enum": ["Honor", "Ignore"]},
                        },
                        "maxSkew",
                        "topologyKey",
                        "whenUnsatisfiable",
                    )
                )
            }
        )
    }
)

BY_WORD: Final = {
    "aks": AKS,
    "eks": EKS,
    "gardener": GARDENER,
    "k3s": K3S,
    "rke2": RKE2,
    "kubeadm": KUBEADM,
    "kubeadm:1.30": KUBEADM_BEFORE_1_31,
    "kubeadm-patches": KUBEADM_PATCHES,
    "talos": TALOS,
    "talos:1.12": TALOS,
    "talos:1.14": TALOS_1_14,
    "karpenter": KARPENTER,
}
"""`--for` -> the schema of its file that is not a KubeSchedulerConfiguration."""
