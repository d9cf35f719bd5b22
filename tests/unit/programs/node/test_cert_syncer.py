"""The certificate syncer: the reference's table of cases, and the requests that it really makes."""

from __future__ import annotations

import base64
import http.server
import json
import ssl
import threading

import pytest

from kube_scheduler_operator.base.files import Disk
from kube_scheduler_operator.programs.node.api_server import ApiServer, ApiServerError, in_cluster
from kube_scheduler_operator.programs.node.cert_syncer import Syncer, Wanted
from kube_scheduler_operator.programs.node.certificates import Certificates

CLIENT = Wanted("managed", "client")
SERVING = Wanted("target", "serving", optional=True)


class Cluster:
    """What the syncer sees: Secrets by name, or the error that asking for one gives."""

    def __init__(self, **secrets):
        self.secrets = secrets
        self.told = []

    def secret(self, namespace, name):
        assert namespace == {"client": "managed", "serving": "target"}[name]
        found = self.secrets.get(name)
        if isinstance(found, Exception):
            raise found
        return found

    def tell(self, note):
        self.told.append((note.reason, note.bad))


@pytest.fixture
def pairs(first_certificate, second_certificate):
    def read(files):
        return {"tls.crt": files.certificate.read_bytes(), "tls.key": files.key.read_bytes()}

    return {"old": read(first_certificate), "new": read(second_certificate)}


UPDATED, REMOVED, FAILED = "CertificateUpdated", "CertificateRemoved", "CertificateUpdateFailed"
REFUSED = ApiServerError("forbidden")

# What is on the node, what the cluster has, what is on the node then, what is said.
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
    ("wanted", "before", "found", "after", "said"), CASES.values(), ids=CASES.keys()
)
def test_what_becomes_of_a_secret(tmp_path, pairs, wanted, before, found, after, said):
    certificates = Certificates(tmp_path, Disk())
    if before:
        certificates.put(wanted.name, pairs[before])
    cluster = Cluster(**{wanted.name: pairs.get(found, found) if isinstance(found, str) else found})
    Syncer([wanted], cluster, certificates).sync()
    directory = tmp_path / "secrets" / wanted.name
    now = {p.name: p.read_bytes() for p in directory.iterdir()} if directory.exists() else None
    assert now == (pairs[after] if after else None)
    assert cluster.told == said


def test_trouble_is_told_once_and_its_end_makes_it_news_again(tmp_path, pairs):
    cluster = Cluster(client=REFUSED)
    syncer = Syncer([CLIENT], cluster, Certificates(tmp_path, Disk()))
    for _ in range(3):
        syncer.sync()
    assert cluster.told == [(FAILED, True)]
    cluster.secrets["client"] = pairs["old"]
    syncer.sync()
    cluster.secrets["client"] = REFUSED
    syncer.sync()
    assert cluster.told == [(FAILED, True), (UPDATED, False), (FAILED, True)]


def test_trouble_with_one_does_not_hold_up_the_other(tmp_path, pairs):
    cluster = Cluster(client=REFUSED, serving=pairs["old"])
    certificates = Certificates(tmp_path, Disk())
    Syncer([CLIENT, SERVING], cluster, certificates).sync()
    assert certificates.has("serving")


@pytest.mark.parametrize("text", ["", "name", "/name", "namespace/", "a/b/c", "?"])
def test_a_secret_needs_a_namespace(text):
    with pytest.raises(ValueError, match="NAMESPACE/NAME"):
        Wanted.parse(text)


def test_how_secrets_are_named():
    assert Wanted.parse("managed/client") == CLIENT
    assert Wanted.parse("target/serving?") == SERVING


# --- the requests ---------------------------------------------------------------------------------
class Handler(http.server.BaseHTTPRequestHandler):
    answers: dict[str, tuple[int, object]]
    asked: list[tuple[str, str, str, object]]

    def _answer(self):
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

    def log_message(self, *_):
        pass


@pytest.fixture
def server(first_certificate, tmp_path):
    """A TLS server, and the identity of a pod that trusts it."""
    handler = type("Handler", (Handler,), {"answers": {}, "asked": []})
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


def test_a_secret_is_read_with_the_token_of_the_pod(server):
    server.answers[PATH] = (200, {"data": {"tls.crt": base64.b64encode(b"c").decode()}})
    api = ApiServer((server.url,), server.identity)
    assert api.secret("managed", "client") == {"tls.crt": b"c"}
    assert server.asked == [("GET", PATH, "Bearer secret-token", None)]
    (server.identity / "token").write_text("renewed")
    api.secret("managed", "client")
    assert server.asked[-1][2] == "Bearer renewed"


def test_what_is_not_there_is_none(server):
    assert ApiServer((server.url,), server.identity).secret("managed", "client") is None


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        ((403, {"message": "secrets is forbidden"}), "secrets is forbidden"),
        ((500, b"oops"), "HTTP 500"),
        ((200, {"kind": "List"}), "no Secret"),
        ((200, {"data": {"tls.crt": "%"}}), "no Secret"),
        ((200, []), "no Secret"),
    ],
)
def test_other_answers_say_what_is_wrong(server, answer, sentence):
    server.answers[PATH] = answer
    with pytest.raises(ApiServerError, match=sentence):
        ApiServer((server.url,), server.identity).secret("managed", "client")


def test_the_next_server_is_asked_when_one_does_not_answer(server):
    server.answers[PATH] = (200, {"data": None})
    api = ApiServer(("https://127.0.0.1:1", server.url), server.identity)
    assert api.secret("managed", "client") == {}


def test_nobody_answers(server):
    with pytest.raises(ApiServerError, match=r"https://127\.0\.0\.1:1: .*refused"):
        ApiServer(("https://127.0.0.1:1",), server.identity).secret("managed", "client")


def test_a_server_of_another_ca_is_not_trusted(server, second_certificate):
    (server.identity / "ca.crt").write_bytes(second_certificate.certificate.read_bytes())
    with pytest.raises(ApiServerError, match="certificate verify failed"):
        ApiServer((server.url,), server.identity).secret("managed", "client")
    assert server.asked == []


def test_an_event_is_about_the_syncers_pod(server):
    path = "/api/v1/namespaces/target/events"
    server.answers[path] = (201, {})
    ApiServer((server.url,), server.identity).event(
        "target", "syncer-x", UPDATED, "wrote it", bad=False
    )
    ((method, asked, _, body),) = server.asked
    assert (method, asked, body["reason"], body["type"]) == ("POST", path, UPDATED, "Normal")
    about = body["involvedObject"]
    assert (about["kind"], about["namespace"], about["name"]) == ("Pod", "target", "syncer-x")


def test_an_event_that_is_refused(server):
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
def test_the_nearest_server_comes_first(monkeypatch, host, servers):
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", host)
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    assert in_cluster(("https://localhost:6443",)).servers == servers
