"""A cluster with the SecondaryScheduler `mine`, as the operator reports it."""

from __future__ import annotations

import json
from typing import Any

from kube_scheduler_operator.base import names
from kube_scheduler_operator.base.platform import KUBEADM
from kube_scheduler_operator.config.language.versions import Version
from kube_scheduler_operator.kube.resource import CONFIG_MAPS, SECONDARY_SCHEDULERS
from kube_scheduler_operator.operator.secondary.content import SecondaryContent, config_map
from kube_scheduler_operator.operator.secondary.desired import OperandDefaults

from ....builders import secondary
from ....desired import desired_secondary
from ..conftest import IMAGE, Cluster, content

SPACE = "schedulers"
REAL = "registry.invalid/real:v1.35.4"
FORGED = "registry.invalid/forged:v1"


class Schedulers:
    """The SecondaryScheduler `mine`, and what tenants add."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        cluster.api.served |= {SECONDARY_SCHEDULERS, CONFIG_MAPS}
        cluster.kubescheduler({"a": 1})
        cluster.revision(1, content())
        self.obj: dict[str, Any] = {**secondary(namespace=SPACE, image=REAL)}
        version = Version.parse("v1.35.4")
        wanted = desired_secondary(self.obj, KUBEADM, OperandDefaults(IMAGE), version)
        assert wanted.content is not None
        self.request, self.content = wanted.request, wanted.content
        self.config_map = config_map(wanted.request, wanted.content)
        self.status = {
            "configHash": wanted.content.hash,
            "image": REAL,
            "profiles": [{"schedulerName": "mine"}],
            "history": [{"hash": wanted.content.hash, "outcome": names.OUTCOME_INSTALLED}],
        }
        cluster.put(CONFIG_MAPS, self.config_map)
        self.put()

    def put(self, **status: Any) -> None:
        self.cluster.put(SECONDARY_SCHEDULERS, {**self.obj, "status": {**self.status, **status}})

    def forged(self, namespace: str, **metadata: Any) -> dict[str, Any]:
        """A ConfigMap of a tenant: the tenant's image and command, the right labels and owner."""
        spec = json.loads(self.content.data[names.POD_KEY])
        spec["containers"][0] |= {"image": FORGED, "command": ["sh", "-c", "forge"]}
        data = {**self.content.data, names.POD_KEY: json.dumps(spec), "image": FORGED}
        made = config_map(self.request, SecondaryContent(data))
        made["metadata"] |= {
            "namespace": namespace,
            "creationTimestamp": "2030-01-01T00:00:00Z",
            **metadata,
        }
        return made
