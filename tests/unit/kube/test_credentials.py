"""Credentials of every form are loaded, and reloaded when they change or expire."""

from __future__ import annotations

import base64
import datetime
import json
import ssl
import sys
from pathlib import Path
from typing import Any

import pytest

from kube_scheduler_operator.kube import credentials
from kube_scheduler_operator.kube.credentials import Access, Credentials
from kube_scheduler_operator.kube.errors import CredentialsError


def kubeconfig(tmp_path: Path, user: dict[str, Any], cluster: dict[str, Any] | None = None) -> str:
    path = tmp_path / "kubeconfig"
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "here",
        "contexts": [{"name": "here", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": "https://api:6443/"} | (cluster or {})}],
        "users": [{"name": "u", "user": user}],
    }
    path.write_text(json.dumps(content))  # JSON is YAML
    return str(path)


def plugin(tmp_path: Path, status: dict[str, Any]) -> dict[str, Any]:
    """An exec plugin that counts its runs in a file."""
    answer = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "kind": "ExecCredential",
        "status": status,
    }
    script = tmp_path / "plugin.py"
    script.write_text(
        f"import pathlib; runs = pathlib.Path({str(tmp_path / 'runs')!r});"
        "runs.write_text((runs.read_text() if runs.exists() else '') + 'x');"
        f"print({json.dumps(answer)!r})"
    )
    return {
        "apiVersion": "client.authentication.k8s.io/v1",
        "command": sys.executable,
        "args": ["-S", str(script)],
    }


def test_token(tmp_path: Path) -> None:
    access = credentials.read_kubeconfig(kubeconfig(tmp_path, {"token": "abc"}))
    assert access.server == "https://api:6443"
    assert access.authorization == "Bearer abc"
    assert access.host == "api:6443"
    assert "abc" not in repr(access)


def test_token_file_relative_to_the_kubeconfig_without_its_newline(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("abc\n")
    access = credentials.read_kubeconfig(kubeconfig(tmp_path, {"tokenFile": "token"}))
    assert access.authorization == "Bearer abc"
    assert str(tmp_path / "token") in {path for path, _, _ in access.files}


def test_password(tmp_path: Path) -> None:
    access = credentials.read_kubeconfig(kubeconfig(tmp_path, {"username": "me", "password": "pw"}))
    assert access.authorization == "Basic " + base64.b64encode(b"me:pw").decode()


def test_certificate_files_and_data(tmp_path: Path) -> None:
    (tmp_path / "me.crt").write_text("CERT")
    (tmp_path / "me.key").write_text("KEY")
    ca = base64.b64encode(b"CA").decode()
    access = credentials.read_kubeconfig(
        kubeconfig(
            tmp_path,
            {"client-certificate": "me.crt", "client-key": "me.key"},
            {"certificate-authority-data": ca},
        )
    )
    assert access.authorization is None
    assert (access.cert_file, access.key_file) == (
        str(tmp_path / "me.crt"),
        str(tmp_path / "me.key"),
    )
    assert access.ca_file is not None
    assert Path(access.ca_file).read_text() == "CA"
    watched = {path for path, _, _ in access.files}
    assert {str(tmp_path / "me.crt"), str(tmp_path / "me.key")} < watched


def test_exec_plugin_with_its_expiry(tmp_path: Path) -> None:
    user = {
        "exec": plugin(tmp_path, {"token": "abc", "expirationTimestamp": "2030-01-01T00:00:00Z"})
    }
    access = credentials.read_kubeconfig(kubeconfig(tmp_path, user))
    assert access.authorization == "Bearer abc"
    assert access.expires == datetime.datetime(2030, 1, 1, tzinfo=datetime.UTC)


def test_options_of_the_cluster(tmp_path: Path) -> None:
    access = credentials.read_kubeconfig(
        kubeconfig(
            tmp_path,
            {"token": "t"},
            {
                "insecure-skip-tls-verify": True,
                "tls-server-name": "kubernetes",
                "proxy-url": "http://proxy:3128",
            },
        )
    )
    assert not access.verify
    assert access.tls_server_name == "kubernetes"
    assert access.proxy == "http://proxy:3128"
    context = access.ssl_context()
    assert context is not None
    assert context.verify_mode is ssl.CERT_NONE


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "does not exist"),
        ("", "cannot load"),
        ("{", "cannot load"),
        ("[]", "cannot load"),
        ("current-context: gone\ncontexts: []\nclusters: []\nusers: []", "gone"),
    ],
    ids=["missing", "empty", "no-yaml", "a-list", "context-missing"],
)
def test_broken_kubeconfig_is_named(tmp_path: Path, content: Any, message: Any) -> None:
    path = tmp_path / "broken"
    if content is not None:
        path.write_text(content)
    with pytest.raises(CredentialsError, match=message) as caught:
        credentials.read_kubeconfig(str(path))
    assert str(path) in str(caught.value)


def test_failing_exec_plugin_is_named(tmp_path: Path) -> None:
    user = {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "/does/not/exist"}}
    with pytest.raises(CredentialsError, match=r"/does/not/exist.*run it to see why"):
        credentials.read_kubeconfig(kubeconfig(tmp_path, user))


def test_invalid_certificate_is_named(tmp_path: Path) -> None:
    (tmp_path / "me.crt").write_text("nonsense")
    access = Access(server="https://api", cert_file=str(tmp_path / "me.crt"))
    with pytest.raises(CredentialsError, match=r"me\.crt"):
        access.ssl_context()
    with pytest.raises(CredentialsError, match="CA file /none"):
        Access(server="https://api", ca_file="/none").ssl_context()


def test_plain_http_needs_no_context() -> None:
    assert Access(server="http://127.0.0.1:8001").ssl_context() is None


@pytest.fixture
def pod(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.96.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    (tmp_path / "token").write_text("first\n")
    (tmp_path / "ca.crt").write_text("CA")
    return tmp_path


async def test_rotated_token_of_a_pod_is_reloaded(pod: Any) -> None:
    time = [0.0]
    ours = Credentials(lambda: credentials.read_service_account(pod), clock=lambda: time[0])
    first = await ours.access()
    assert first.server == "https://10.96.0.1:443"
    assert first.authorization == "Bearer first"
    assert first.ca_file == str(pod / "ca.crt")
    (pod / "token").write_text("the second")
    assert await ours.access() is first  # not looked at again within a second
    time[0] += 2
    assert (await ours.access()).authorization == "Bearer the second"


def test_ipv6_service_address(pod: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "fd00::1")
    assert credentials.read_service_account(pod).server == "https://[fd00::1]:443"


@pytest.mark.parametrize(
    ("break_it", "message"),
    [
        (lambda pod: (pod / "token").unlink(), "automountServiceAccountToken"),
        (lambda pod: (pod / "token").write_text("\n"), "is empty"),
    ],
    ids=["no-token", "empty-token"],
)
def test_pod_without_a_token_is_an_error(pod: Any, break_it: Any, message: Any) -> None:
    break_it(pod)
    with pytest.raises(CredentialsError, match=message):
        credentials.read_service_account(pod)


def test_outside_of_a_pod_the_kubeconfig_is_suggested(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    with pytest.raises(CredentialsError, match="--kubeconfig"):
        credentials.read_service_account(tmp_path)


@pytest.mark.parametrize(
    ("given", "environment", "in_pod", "expected"),
    [
        ("given", "env", True, "given"),
        (None, "env", True, "env"),
        (None, None, True, "pod"),
        (None, None, False, "~/.kube/config"),
    ],
    ids=["flag", "KUBECONFIG", "pod", "home"],
)
async def test_order_of_the_sources(
    monkeypatch: pytest.MonkeyPatch, given: Any, environment: Any, in_pod: Any, expected: Any
) -> None:
    for name, value in (
        ("KUBECONFIG", environment),
        ("KUBERNETES_SERVICE_HOST", "x" if in_pod else None),
    ):
        if value is None:
            monkeypatch.delenv(name, raising=False)
        else:
            monkeypatch.setenv(name, value)
    monkeypatch.setattr(credentials, "read_kubeconfig", lambda path, context: Access(path))
    monkeypatch.setattr(credentials, "read_service_account", lambda directory: Access("pod"))
    assert (await credentials.find(given).access()).server == expected


def test_a_program_stays_with_its_context(tmp_path: Path) -> None:
    """`kubectl config use-context` beside a console or a watch does not move it elsewhere."""
    path = Path(kubeconfig(tmp_path, {"token": "abc"}))
    content = json.loads(path.read_text())
    content["contexts"].append({"name": "there", "context": {"cluster": "d", "user": "u"}})
    content["clusters"].append({"name": "d", "cluster": {"server": "https://other:6443"}})
    path.write_text(json.dumps(content))
    ours = credentials.find(str(path))
    first = ours.reload()
    assert (first.context, first.server) == ("here", "https://api:6443")
    path.write_text(json.dumps({**content, "current-context": "there"}))
    ours.invalidate()
    assert ours.reload().server == "https://api:6443"
    assert credentials.find(str(path)).reload().server == "https://other:6443"


async def test_expiring_credentials_are_renewed_before_they_end() -> None:
    start = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
    moment, time, loads = [start], [0.0], []

    def load() -> Access:
        loads.append(moment[0])
        return Access(server="https://a", expires=moment[0] + datetime.timedelta(minutes=10))

    ours = Credentials(load, clock=lambda: time[0], now=lambda: moment[0])

    async def after(minutes: float) -> int:
        moment[0] = start + datetime.timedelta(minutes=minutes)
        time[0] = minutes * 60
        await ours.access()
        return len(loads)

    assert [await after(m) for m in (0, 5, 8.9, 9.1, 9.2, 18)] == [1, 1, 1, 2, 2, 2]


async def test_expired_credentials_are_not_reloaded_at_every_request() -> None:
    loads = []

    def load() -> Access:
        loads.append(1)
        return Access(
            server="https://a", expires=datetime.datetime(2000, 1, 1, tzinfo=datetime.UTC)
        )

    ours = Credentials(load, clock=lambda: 0.0)
    for _ in range(10):
        await ours.access()
    assert len(loads) == 1


async def test_rejected_credentials_are_reloaded() -> None:
    loads: list[int] = []

    def load() -> Access:
        loads.append(1)
        return Access(server="https://a")

    ours = Credentials(load)
    await ours.access()
    await ours.access()
    assert len(loads) == 1
    ours.invalidate()
    await ours.access()
    assert len(loads) == 2


async def test_exec_plugin_runs_once_while_its_token_is_valid(tmp_path: Path) -> None:
    path = kubeconfig(tmp_path, {"exec": plugin(tmp_path, {"token": "abc"})})
    time = [0.0]
    ours = Credentials(lambda: credentials.read_kubeconfig(path), clock=lambda: time[0])
    for _ in range(5):
        await ours.access()
        time[0] += 100
    assert (tmp_path / "runs").read_text() == "x"


def test_connections_are_shared_while_only_the_token_changes() -> None:
    one, two = (Access(server="https://a", authorization=token) for token in ("x", "y"))
    assert one.transport == two.transport
    assert Access(server="https://a", ca_file="b").transport != one.transport


def test_the_users_to_impersonate_of_a_kubeconfig(tmp_path: Path) -> None:
    user = {"token": "abc", "as": "jane", "as-groups": ["a", "b"], "as-uid": "7"}
    access = credentials.read_kubeconfig(kubeconfig(tmp_path, user))
    assert access.impersonation == (
        ("Impersonate-User", "jane"),
        ("Impersonate-Group", "a"),
        ("Impersonate-Group", "b"),
        ("Impersonate-Uid", "7"),
    )


async def test_flags_for_impersonation_come_before_those_of_the_kubeconfig(tmp_path: Path) -> None:
    path = kubeconfig(tmp_path, {"token": "abc", "as": "jane", "as-groups": ["a"]})
    found = credentials.find(path, impersonation=credentials.impersonate("bob"))
    assert (await found.access()).impersonation == (("Impersonate-User", "bob"),)
    assert (await credentials.find(path).access()).impersonation[0] == ("Impersonate-User", "jane")


def test_groups_need_a_user_to_impersonate() -> None:
    assert credentials.impersonate("") == ()
    with pytest.raises(CredentialsError, match="--as-group and --as-uid need --as"):
        credentials.impersonate("", ["a"])
