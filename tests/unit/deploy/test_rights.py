"""docs/rights.md lists the rights of every ServiceAccount, generated from the manifests.

`pytest tests/unit/deploy --update` regenerates it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from kube_scheduler_operator.base import names
from kube_scheduler_operator.base.platform import KUBEADM, OPENSHIFT, PLATFORMS, Platform

from .overlays import DEPLOY, build
from .test_overlays import bound, bound_by

DOCUMENT = Path(__file__).resolve().parents[3] / "docs" / "rights.md"
ACCOUNTS_HEAD = """\
## Accounts

What every ServiceAccount may do; a test generates this part from `deploy/`. OpenShift's own
operator, its installer and a token on every control-plane disk are bound to `cluster-admin`: every
cell would be "everything".

With the admission policies, `patch` of nodes by `load-annotator` is limited to its annotations. The
operator lists Secrets with the label `kube-scheduler-operator.dev/token-for` and keeps their labels
only; it creates Pods in that namespace, and could read them anyway.

The rights to `list` volumes, claims, owners, budgets, quotas and devices are for simulations of
edits and checks of upgrades (`spec.placementCheck` and `spec.upgradeCheck` of OperatorSettings),
which are off by default.

The hook of the Helm chart has additional rights while `helm uninstall` runs it:
`deploy/helm/templates/uninstall.yaml`.

No account has `*`, `escalate` or `impersonate`. `bind` is limited by name to the three roles that a
SecondaryScheduler gets: the operator can only grant these and the rights that it has itself. In a
namespace that is added for SecondarySchedulers it has the rights of `deploy/secondary-schedulers`.

An empty column "Names" means all objects of the kind.
"""
ACCOUNTS = {
    names.PROGRAM: "the operator",
    names.INSTALLER_SERVICE_ACCOUNT: "installer, restore and guard pods",
    names.LOAD_ANNOTATOR: "the annotator, which writes the load of nodes into their annotations",
    names.KUBELET_STATS: "what kubelets see of the annotator",
    "cert-syncer-sa": "the certificate syncer",
}


WEBHOOKS: Mapping[Platform, str] = {KUBEADM: "webhook", OPENSHIFT: "openshift-webhook"}
"""Where the operator answers a webhook -> what to apply; the others are as on kubeadm."""
WEBHOOK_HEAD = """
### With the webhook for `spec.assign`

Before Kubernetes 1.36, `deploy/assignment` adds a webhook for [assignment.md](assignment.md) (Helm:
`assignment.way`). With it, the operator's account may also do this; a ValidatingAdmissionPolicy
limits the update to the field `caBundle`. The policy that applies `spec.assign` from 1.36 on adds
no rights.
"""


def rows(platform: Platform, account: str, namespace: str) -> list[str]:
    """One line per rule: namespace, resources, names and verbs."""
    return lines(bound(platform, account, namespace))


def lines(rules: Iterable[tuple[str, Any]]) -> list[str]:
    """One line per rule in a namespace."""
    found = []
    for place, rule in rules:
        what = [
            f"`{resource}.{group}`" if group else f"`{resource}`"
            for group in rule["apiGroups"]
            for resource in rule["resources"]
        ]
        cells = (
            f"`{place}`" if place else "the whole cluster",
            ", ".join(what),
            ", ".join(f"`{name}`" for name in rule.get("resourceNames", ())),
            ", ".join(rule["verbs"]),
        )
        found.append(f"| {' | '.join(cells)} |")
    return sorted(found)


def section(platform: Platform) -> str:
    text = f"\n### {platform.name}\n"
    for account, what in ACCOUNTS.items():
        namespace = platform.target_namespace
        if account == names.PROGRAM:
            account, namespace = platform.operator.account, platform.operator_namespace
        found = rows(platform, account, namespace)
        if not found and account != names.INSTALLER_SERVICE_ACCOUNT:
            continue  # the platform does not have it
        text += f"\n#### `{account}`: {what}\n\n"
        if found:
            text += table(found)
        else:
            text += "Nothing; its pods have no token either.\n"
    return text


def table(found: list[str]) -> str:
    head = "| Where | What | Names | Verbs |\n|---|---|---|---|\n"
    return head + "\n".join(found) + "\n"


def webhook_section() -> str:
    text = WEBHOOK_HEAD
    for platform, folder in WEBHOOKS.items():
        account, namespace = platform.operator.account, platform.operator_namespace
        found = lines(bound_by(build(DEPLOY / "assignment" / folder), account, namespace))
        text += f"\n#### `deploy/assignment/{folder}`\n\n{table(found)}"
    return text


def test_the_page_lists_what_the_manifests_grant(golden: Any) -> None:
    by_hand = DOCUMENT.read_text(encoding="utf-8").partition("## Accounts\n")[0]
    generated = "".join(section(platform) for platform in PLATFORMS.values())
    golden(DOCUMENT, by_hand + ACCOUNTS_HEAD + generated + webhook_section())


def test_the_roles_for_people_are_those_of_the_page() -> None:
    text = DOCUMENT.read_text(encoding="utf-8").partition("\n## What")[0]
    for platform in PLATFORMS.values():
        roles = {
            obj["metadata"]["name"]: obj["metadata"]["labels"]
            for obj in build(DEPLOY / platform.name)
            if obj["kind"] == "ClusterRole" and f"| `{obj['metadata']['name']}` |" in text
        }
        assert {
            name: [key.rpartition("-")[2] for key in labels if "aggregate-to" in key]
            for name, labels in roles.items()
        } == {
            f"{names.PROGRAM}-view": ["view"],
            f"{names.PROGRAM}-edit-profiles": ["edit"],
            f"{names.PROGRAM}-admin": [],
            f"{names.PROGRAM}-approve": [],
        }


def test_installer_pods_have_no_rights() -> None:
    for platform in PLATFORMS.values():
        account = names.INSTALLER_SERVICE_ACCOUNT
        assert rows(platform, account, platform.target_namespace) == []
