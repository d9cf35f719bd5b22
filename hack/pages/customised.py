"""Files of two control-plane nodes whose schedulers were customised through kubeadm."""

from __future__ import annotations

from pathlib import Path
from string import Template

from cluster import paths
from cluster.releases import DEFAULT

_TEMPLATE = paths.REPOSITORY / "hack" / "cluster" / "templates" / "kube-scheduler.yaml"
_FLAGS = """\
    - --leader-elect=true
    - --config=/etc/kubernetes/scheduler/config.yaml
    - --v=4
    env:
    - name: GOGC
      value: "50"
    - name: HTTPS_PROXY
      value: http://{proxy}:3128
"""
_MOUNT = """\
    volumeMounts:
    - mountPath: /etc/kubernetes/scheduler
      name: config
      readOnly: true
"""
_VOLUME = """\
  volumes:
  - hostPath:
      path: /etc/kubernetes/scheduler
    name: config
"""
_CONFIG = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
clientConnection:
  kubeconfig: /etc/kubernetes/scheduler.conf
parallelism: 8
profiles:
- schedulerName: default-scheduler
  plugins:
    score:
      disabled:
      - name: ImageLocality
- schedulerName: batch
  pluginConfig:
  - name: NodeResourcesFit
    args:
      scoringStrategy:
        type: MostAllocated
        resources:
        - name: cpu
          weight: 1
"""


def write_files(folder: Path) -> None:
    """`cp-1/` and `cp-2/`, each with a manifest and a configuration file; cp-2 has a password."""
    for node, proxy, cpu in (
        ("cp-1", "proxy.example", "250m"),
        ("cp-2", "me:secret@proxy.example", "100m"),
    ):
        text = Template(_TEMPLATE.read_text()).substitute(
            image=f"registry.k8s.io/kube-scheduler:{DEFAULT}"
        )
        for old, new in (
            ("    - --leader-elect=true\n", _FLAGS.format(proxy=proxy)),
            ("    volumeMounts:\n", _MOUNT),
            ("  volumes:\n", _VOLUME),
            ("cpu: 100m", f"cpu: {cpu}"),
        ):
            text = text.replace(old, new)
        (folder / node).mkdir()
        (folder / node / "kube-scheduler.yaml").write_text(text)
        (folder / node / "config.yaml").write_text(_CONFIG)
