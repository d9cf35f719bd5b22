"""The certificate syncer: the reference's table of cases, and its HTTP requests."""

from __future__ import annotations

import base64
import http.server
import json
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kube_scheduler_operator.base.files import Disk
from kube_scheduler_operator.node.static_pod.cert_syncer import (
    ApiServer,
    ApiServerError,
    CertSyncerOptions,
    SecretRef,
    Syncer,
    in_cluster,
)
from kube_scheduler_operator.node.static_pod.certificates import Certificates

CLIENT = SecretRef("managed", "client")
SERVING = SecretRef("target", "serving", optional=True)


class Cluster:
    """A fake cluster: Secrets by name, or the error of reading one."""

    def __init__(self, **secrets: Any) -> None:
        self.secrets = secrets
        self.recorded: list[Any] = []

    def secret(self, namespace: Any, name: Any) -> Any:
        assert namespace == {"client": "managed", "serving": "target"}[name]
        found = self.secrets.get(name)
        if isinstance(found, Exception):
            raise found
        return found

    def event(self, namespace: Any, pod: Any, reason: Any, message: Any, *, bad: Any) -> None:
        assert (namespace, pod) == ("target", "syncer-x")
        self.recorded.append((reason, bad))


def syncer(cluster: Any, certs_dir: Path, *secrets: SecretRef) -> Syncer:
    return Syncer(CertSyncerOptions(certs_dir, secrets, (), "syncer-x", "target"), cluster)


@pytest.fixture
def pairs(first_certificate: Any, second_certificate: Any) -> dict[str, Any]:
    def read(files: Any) -> dict[str, Any]:
        return {"tls.crt": files.certificate.read_bytes(), "tls.key": files.key.read_bytes()}

    return {"old": read(first_certificate), "new": read(second_certificate)}


UPDATED, REMOVED, FAILED = "CertificateUpdated", "CertificateRemoved", "CertificateUpdateFailed"
REFUSED = ApiServerError("forbidden")

# The Secret, the node before, the cluster, the node afterwards, the recorded events.
CASES = {
    "required: created": (CLIENT, None, "old", "old", [(UPDATED, False)]),
    "required: changed": (CLIENT, "old", "new", "new", [(UPDATED, False)]),
    "required: in sync": (CLIENT, "old", "old", "old", []),
    "required: missing": (CLIENT, "old", None, "old", [(FAILED, True)]),
    "required: missing from the start": (CLIENT, None, None, None, [(FAILED, True)]),
    "required: cannot be read": (CLIENT, "old", REFUSED, "old", [(FAILED, True)]),
    "required: no pair": (CLIENT, "old", {"tls.crt": b"x"}, "old", [(FAILED, True)]),
    "required: empty": (CLIENT, "old", {}, "old", [(FAILED, True)]),
    "optional: created": (SERVING, None, "old", "old", [(UPDATED, False)]),
    "optional: changed": (SERVING, "old", "new", "new", [(UPDATED, False)]),
    "optional: in sync": (SERVING, "old", "old", "old", []),
    "optional: gone": (SERVING, "old", None, None, [(REMOVED, False)]),
    "optional: never there": (SERVING, None, None, None, []),
    "optional: cannot be read": (SERVING, "old", REFUSED, "old", [(FAILED, True)]),
    "optional: no pair": (SERVING, "old", {"tls.key": b"x"}, "old", [(FAILED, True)]),
}


@pytest.mark.parametrize(
    ("ref", "before", "found", "after", "events"), CASES.values(), ids=CASES.keys()
)
def test_sync_of_one_secret(
    tmp_path: Path,
    pairs: dict[str, Any],
    ref: Any,
    before: Any,
    found: Any,
    after: Any,
    events: Any,
) -> None:
    certificates = Certificates(tmp_path, Disk())
    if before:
        certificates.put(ref.name, pairs[before])
    cluster = Cluster(**{ref.name: pairs.get(found, found) if isinstance(found, str) else found})
    syncer(cluster, tmp_path, ref).sync()
    directory = tmp_path / "secrets" / ref.name
    now = {p.name: p.read_bytes() for p in directory.iterdir()} if directory.exists() else None
    assert now == (pairs[after] if after else None)
    assert cluster.recorded == events


def test_failure_is_recorded_once_until_it_ends(tmp_path: Path, pairs: dict[str, Any]) -> None:
    cluster = Cluster(client=REFUSED)
    synced = syncer(cluster, tmp_path, CLIENT)
    for _ in range(3):
        synced.sync()
    assert cluster.recorded == [(FAILED, True)]
    cluster.secrets["client"] = pairs["old"]
    synced.sync()
    cluster.secrets["client"] = REFUSED
    synced.sync()
    assert cluster.recorded == [(FAILED, True), (UPDATED, False), (FAILED, True)]


def test_failure_of_one_secret_does_not_block_the_others(
    tmp_path: Path, pairs: dict[str, Any]
) -> None:
    cluster = Cluster(client=REFUSED, serving=pairs["old"])
    syncer(cluster, tmp_path, CLIENT, SERVING).sync()
    assert Certificates(tmp_path, Disk()).has("serving")


@pytest.mark.parametrize("text", ["", "name", "/name", "namespace/", "a/b/c", "?"])
def test_a_secret_needs_a_namespace(text: Any) -> None:
    with pytest.raises(ValueError, match="NAMESPACE/NAME"):
        SecretRef.parse(text)


def test_string_of_a_secret_reference() -> None:
    assert SecretRef.parse("managed/client") == CLIENT
    assert SecretRef.parse("target/serving?") == SERVING


# --- the requests ---------------------------------------------------------------------------------
class Handler(http.server.BaseHTTPRequestHandler):
    answers: dict[str, tuple[int, object]]
    asked: list[tuple[str, str, str, object]]

    def _answer(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        body = json.loads(self.rfile.read(length)) if length else None
        self.asked.append((self.command, self.path, self.headers["Authorization"], body))
        code, answer = self.answers.get(self.path, (404, {"message": "not found"}))
        data = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
        self.send_response(code)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    do_GET = do_POST = _answer  # noqa: N815 - the library calls them so

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def server(first_certificate: Any, tmp_path: Path) -> Iterator[Any]:
    """A TLS server, and the identity of a pod that trusts it."""
    handler: Any = type("Handler", (Handler,), {"answers": {}, "asked": []})
    made = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(first_certificate.certificate, first_certificate.key)
    made.socket = context.wrap_socket(made.socket, server_side=True)
    thread = threading.Thread(target=made.serve_forever)
    thread.start()
    identity = tmp_path / "identity"
    identity.mkdir()
    (identity / "token").write_text("secret-token\n")
    (identity / "ca.crt").write_bytes(first_certificate.certificate.read_bytes())
    handler.url = f"https://127.0.0.1:{made.server_address[1]}"
    handler.identity = identity
    yield handler
    made.shutdown()
    thread.join()
    made.server_close()


PATH = "/api/v1/namespaces/managed/secrets/client"


def test_a_secret_is_read_with_the_token_of_the_pod(server: Any) -> None:
    server.answers[PATH] = (200, {"data": {"tls.crt": base64.b64encode(b"c").decode()}})
    api = ApiServer((server.url,), server.identity)
    assert api.secret("managed", "client") == {"tls.crt": b"c"}
    assert server.asked == [("GET", PATH, "Bearer secret-token", None)]
    (server.identity / "token").write_text("renewed")
    api.secret("managed", "client")
    assert server.asked[-1][2] == "Bearer renewed"


def test_missing_secret_is_none(server: Any) -> None:
    assert ApiServer((server.url,), server.identity).secret("managed", "client") is None


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        ((403, {"message": "secrets is forbidden"}), "secrets is forbidden"),
        ((500, b"oops"), "HTTP 500"),
        ((200, {"kind": "List"}), "not a Secret"),
        ((200, {"data": {"tls.crt": "%"}}), "not a Secret"),
        ((200, []), "not a Secret"),
    ],
)
def test_error_response_raises_with_its_message(server: Any, answer: Any, sentence: Any) -> None:
    server.answers[PATH] = answer
    with pytest.raises(ApiServerError, match=sentence):
        ApiServer((server.url,), server.identity).secret("managed", "client")


def test_next_server_is_used_when_one_does_not_answer(server: Any) -> None:
    server.answers[PATH] = (200, {"data": None})
    api = ApiServer(("https://127.0.0.1:1", server.url), server.identity)
    assert api.secret("managed", "client") == {}


def test_no_server_answers(server: Any) -> None:
    with pytest.raises(ApiServerError, match=r"https://127\.0\.0\.1:1: .*refused"):
        ApiServer(("https://127.0.0.1:1",), server.identity).secret("managed", "client")


def test_a_server_of_another_ca_is_not_trusted(server: Any, second_certificate: Any) -> None:
    (server.identity / "ca.crt").write_bytes(second_certificate.certificate.read_bytes())
    with pytest.raises(ApiServerError, match="certificate verify failed"):
        ApiServer((server.url,), server.identity).secret("managed", "client")
    assert server.asked == []


def test_event_involves_the_syncers_pod(server: Any) -> None:
    path = "/api/v1/namespaces/target/events"
    server.answers[path] = (201, {})
    ApiServer((server.url,), server.identity).event(
        "target", "syncer-x", UPDATED, "wrote it", bad=False
    )
    ((method, asked, _, body),) = server.asked
    assert (method, asked, body["reason"], body["type"]) == ("POST", path, UPDATED, "Normal")
    about = body["involvedObject"]
    assert (about["kind"], about["namespace"], about["name"]) == ("Pod", "target", "syncer-x")


def test_rejected_event_raises(server: Any) -> None:
    api = ApiServer((server.url,), server.identity)
    with pytest.raises(ApiServerError, match="not found"):
        api.event("target", "syncer-x", UPDATED, "wrote it", bad=True)


@pytest.mark.parametrize(
    ("host", "servers"),
    [
        ("10.0.0.1", ("https://localhost:6443", "https://10.0.0.1:443")),
        ("fd00::1", ("https://localhost:6443", "https://[fd00::1]:443")),
        ("", ("https://localhost:6443",)),
    ],
)
def test_the_nearest_server_comes_first(
    monkeypatch: pytest.MonkeyPatch, host: Any, servers: Any
) -> None:
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", host)
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    assert in_cluster(("https://localhost:6443",)).servers == servers
