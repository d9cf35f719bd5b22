"""OpenShift's secondary-scheduler-operator: a SecondaryScheduler and its ConfigMap.

Source: openshift/secondary-scheduler-operator 1.5, pkg/apis/secondaryscheduler/v1/types.go and
bindata/assets/secondary-scheduler/deployment.yaml.
"""

from __future__ import annotations

from typing import Final

from ....base.source.reader import Document
from .document_fields import at, label_of, namespace_of, text, value_of
from .form import CommandLine, CommandLineFlag, Contents, Mount
from .workload import stock_version

CONFIG: Final = "/etc/kubernetes/config.yaml"


def read(document: Document) -> Contents:
    """Read spec.schedulerConfig, which names a ConfigMap with the key config.yaml."""
    value = value_of(document)
    path = ("spec", "schedulerConfig")
    image = text(at(value, "spec", "schedulerImage"))
    mount = Mount("/etc/kubernetes", "ConfigMap", text(at(value, *path)), at=path)
    command = CommandLine(
        label=label_of(value),
        arguments=(CommandLineFlag("config", CONFIG, path),),
        at=path,
        mounts=(mount,),
        image=image,
        image_at=("spec", "schedulerImage"),
        version=stock_version(image),
        namespace=namespace_of(value) or "openshift-secondary-scheduler-operator",
        account="secondary-scheduler",
    )
    return Contents(commands=(command,))
