"""docs/rights.md says what every ServiceAccount may do; it is made of the manifests.

`pytest tests/unit/deploy --update` writes it anew.
"""

from __future__ import annotations

from pathlib import Path

from kube_scheduler_operator.base import names
from kube_scheduler_operator.base.platform import PLATFORMS, Platform

from .test_overlays import bound

DOCUMENT = Path(__file__).resolve().parents[3] / "docs" / "rights.md"
HEAD = """\
# Rights

What every ServiceAccount may do, made from `deploy/` by a test. OpenShift's own operator, its
installer and a token that lies on every control-plane disk are bound to `cluster-admin`, so every
cell would read "everything" there.

The hook of the Helm chart has rights of its own while `helm uninstall` runs it:
`deploy/helm/templates/uninstall.yaml`.

Nobody has `*`, `escalate` or `impersonate`. `bind` is for the three roles that a SecondaryScheduler
gets, by name: the operator can hand out these and what it may do itself, nothing else, whatever it
writes into bindings. In a namespace that is added for SecondarySchedulers it has the rights of
`deploy/secondary-schedulers`.

What an empty column "Names" allows is allowed for all objects of the kind.
"""
ACCOUNTS = {
    names.PROGRAM: "the operator",
    names.INSTALLER_SERVICE_ACCOUNT: "pods that install, restore and guard",
    names.LOAD_ANNOTATOR: "who writes the load of nodes into their annotations",
    "cert-syncer-sa": "the certificate syncer",
}


def rows(platform: Platform, account: str, namespace: str) -> list[str]:
    """One line for each rule: where, what, which ones, and which verbs."""
    lines = []
    for place, rule in bound(platform, account, namespace):
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
        lines.append(f"| {' | '.join(cells)} |")
    return sorted(lines)


def section(platform: Platform) -> str:
    text = f"\n## {platform.name}\n"
    for account, what in ACCOUNTS.items():
        operators = account == names.PROGRAM
        namespace = platform.operator_namespace if operators else platform.target_namespace
        found = rows(platform, account, namespace)
        if not found and account not in (names.PROGRAM, names.INSTALLER_SERVICE_ACCOUNT):
            continue  # it is not there at all
        text += f"\n### `{account}`: {what}\n\n"
        if found:
            head = "| Where | What | Names | Verbs |\n|---|---|---|---|\n"
            text += head + "\n".join(found) + "\n"
        else:
            text += "Nothing; its pods have no token either.\n"
    return text


def test_the_document_says_what_the_manifests_grant(golden) -> None:
    golden(DOCUMENT, HEAD + "".join(section(platform) for platform in PLATFORMS.values()))


def test_who_installs_has_no_rights() -> None:
    for platform in PLATFORMS.values():
        account = names.INSTALLER_SERVICE_ACCOUNT
        assert rows(platform, account, platform.target_namespace) == []
