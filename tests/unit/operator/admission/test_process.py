"""The webhook's process: how it starts, ends and fails, and what a flood does to others."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import ssl
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from benchmarks.review_flood import flooded
from kube_scheduler_operator.base import tasks
from kube_scheduler_operator.base.backoff import Backoff
from kube_scheduler_operator.operator.admission import program, supervisor
from kube_scheduler_operator.operator.engine.webhook_certificates import issue
from kube_scheduler_operator.operator.secondary.admission_review import essentials

from .webhook_client import HOST, SCHEDULER, STRANGER, Webhook, assigned_to, post, review, webhook

EVERY_POD = {
    "metadata": {"name": "packed"},
    "status": {"assignment": {"schedulerName": "packed", "pods": {}}},
}

pytestmark = pytest.mark.timeout(300, func_only=True)


@pytest.fixture
async def hook(tmp_path: Path) -> AsyncIterator[Webhook]:
    async with webhook(tmp_path) as made:
        await made.serves()
        yield made


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(90):
        while not condition():  # noqa: ASYNC110 - another process decides
            await asyncio.sleep(0.02)


def proc(pid: int, name: str) -> bytes:
    return Path(f"/proc/{pid}/{name}").read_bytes()


def lives(pid: int) -> bool:
    """Whether a process runs; one that has ended and was not waited for does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


async def test_it_assigns_and_reports_what_it_did(hook: Webhook) -> None:
    hook.namespaces["web"] = {"team": "web"}
    assert await hook.scheduler_of() == "packed"
    assert await hook.scheduler_of(namespace="web") == ""
    assert await hook.scheduler_of(namespace="kube-system") == ""
    await hook.counted(assigned=1, unchanged=2)
    assert set(hook.reads) == {"jobs", "web"}
    hook.process.use([])
    await hook.becomes("")
    hook.process.use(essentials([SCHEDULER]))
    await hook.becomes("packed")


async def test_a_killed_process_serves_again(hook: Webhook) -> None:
    for _ in range(2):
        before = hook.process.pid
        os.kill(before, signal.SIGKILL)
        await until(lambda before=before: hook.process.pid not in (0, before))  # type: ignore[misc]
        await hook.serves()
        assert await hook.scheduler_of() == "packed"


async def test_a_process_without_orders_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would keep its certificate until that expires."""
    monkeypatch.setattr(supervisor, "PROGRAM", ("-c", "import sys; sys.stdin.read()"))
    monkeypatch.setattr(tasks, "RESTARTS", Backoff((0.01, 60.0)))
    errors: list[Exception] = []
    monkeypatch.setattr(tasks, "contained", lambda *arguments: errors.append(arguments[-1]))

    def unwritable(_order: object) -> bytes:
        raise ValueError("an order that cannot be written")

    monkeypatch.setattr(supervisor, "order_line", unwritable)
    process = supervisor.WebhookProcess(("127.0.0.1", 0), None, [], lambda *_: None)
    process.serve("certificate", "key")
    await until(lambda: len(errors) == 2)
    await process.stop()
    assert process.pid == 0


async def test_a_process_that_reports_nothing_is_replaced(
    hook: Webhook, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisor, "SILENT_SECONDS", 3.0)
    before = hook.process.pid
    await asyncio.sleep(program.REPORT_SECONDS + 0.5)  # the limit counts from the next report
    os.kill(before, signal.SIGSTOP)
    await until(lambda: hook.process.pid not in (0, before))
    monkeypatch.undo()
    await hook.serves()
    assert await hook.scheduler_of() == "packed"
    assert not lives(before)


async def test_it_ends_with_the_configuration(hook: Webhook) -> None:
    before = hook.process.pid
    await hook.process.stop()
    assert (hook.process.port, hook.process.pid) == (0, 0)
    assert not lives(before)
    hook.process.serve(hook.issued["tls.crt"], hook.issued["tls.key"])
    await hook.serves()
    assert await hook.scheduler_of() == "packed"


def test_it_ends_with_its_standard_input() -> None:
    with subprocess.Popen(
        [sys.executable, *supervisor.PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        os.kill(process.pid, 0)
        _, _ = process.communicate(timeout=60)
    assert process.returncode is not None


PARENT = """
import asyncio, sys
from pathlib import Path
from unit.operator.admission.webhook_client import webhook

async def main():
    async with webhook(Path(sys.argv[1])) as hook:
        await hook.serves()
        print(hook.process.pid, flush=True)
        await asyncio.sleep(600)

asyncio.run(main())
"""


async def test_it_ends_when_the_operator_is_killed(tmp_path: Path) -> None:
    parent = await asyncio.create_subprocess_exec(
        sys.executable, "-c", PARENT, str(tmp_path), stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])},
    )  # fmt: skip
    assert parent.stdout is not None
    pid = int(await parent.stdout.readline())
    assert lives(pid)
    parent.kill()
    await parent.wait()
    await until(lambda: not lives(pid))


async def test_others_cannot_read_its_key(hook: Webhook, caplog: pytest.LogCaptureFixture) -> None:
    secret = hook.issued["tls.key"].splitlines()[1]
    assert await hook.scheduler_of() == "packed"
    for name in ("cmdline", "environ"):
        found = proc(hook.process.pid, name)
        assert found
        assert secret.encode() not in found
        assert b"PRIVATE KEY" not in found
    assert secret not in caplog.text
    assert secret not in repr(hook.process._desired)


async def test_it_fails_before_the_operator(hook: Webhook) -> None:
    niceness = os.getpriority(os.PRIO_PROCESS, hook.process.pid)
    assert niceness == min(os.getpriority(os.PRIO_PROCESS, 0) + program.NICENESS, 19)
    limits = {
        line[:26].strip(): line[26:].split()[0]
        for line in proc(hook.process.pid, "limits").decode().splitlines()[1:]
    }
    assert limits["Max data size"] == str(program.MEMORY)
    assert limits["Max core file size"] == "0"
    assert proc(hook.process.pid, "oom_score_adj").strip() == b"1000"


def test_an_allocation_beyond_the_limit_fails_in_the_process_alone() -> None:
    code = (
        "from kube_scheduler_operator.operator.admission import program\n"
        "program._limit()\n"
        "kept = []\n"
        "try:\n"
        "    while True: kept.append(bytearray(8 << 20))\n"
        "except MemoryError:\n"
        "    print(len(kept) * 8)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    assert 100 < int(done.stdout) < program.MEMORY >> 20


async def test_a_port_in_use_is_reported_once_and_tried_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        async with webhook(tmp_path, port=other.getsockname()[1]) as hook:
            await until(lambda: hook.process.problem != "")
            assert "in use" in hook.process.problem
            await asyncio.sleep(1.5 * program.RETRY_SECONDS)
            assert caplog.text.count("Cannot serve the webhook") == 1
            assert hook.process.port == 0
            other.close()
            await hook.serves()
            assert hook.process.problem == ""
            assert await hook.scheduler_of() == "packed"


async def test_a_new_certificate_is_served_without_a_gap(hook: Webhook) -> None:
    before, (port, pid) = hook.issued, (hook.process.port, hook.process.pid)
    kept = await hook.connect()
    assert assigned_to(*await kept.ask(post(review()))) == "packed"
    hook.issued = await asyncio.to_thread(issue, HOST, 30)
    hook.process.serve(hook.issued["tls.crt"], before["tls.key"])
    await until(lambda: "belong together" in hook.process.problem)
    assert hook.process.certificate == before["tls.crt"]
    with pytest.raises(ssl.SSLError):
        await hook.connect()
    hook.process.serve(hook.issued["tls.crt"], hook.issued["tls.key"])
    await until(lambda: hook.process.certificate == hook.issued["tls.crt"])
    assert hook.process.problem == ""
    assert await hook.scheduler_of() == "packed"
    assert assigned_to(*await kept.ask(post(review()))) == "packed"
    assert (hook.process.port, hook.process.pid) == (port, pid)


@pytest.mark.parametrize(
    ("kind", "connections"),
    [
        ("bodies", 6), ("bodies", 12), ("bodies", 64), ("small", 12), ("chunked", 64),
        ("slow", 64), ("slow-heads", 64), ("handshakes", 64), ("idle", 300),
    ],
)  # fmt: skip
async def test_a_flood_from_one_address_loses_no_review_of_another(
    tmp_path: Path, kind: str, connections: int, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    async with webhook(tmp_path, [EVERY_POD]) as hook:
        await hook.serves()
        pid = hook.process.pid
        kept = await hook.connect()
        with flooded(hook.process.port, STRANGER, kind, connections):
            await asyncio.sleep(0.5)
            for number in range(30):
                assert assigned_to(*await kept.ask(post(review()))) == "packed"
                if number % 15 == 0:  # an API server that comes now
                    assert await hook.scheduler_of() == "packed"
                await asyncio.sleep(0.02)
        memory = proc(pid, "status").partition(b"VmHWM:")[2].split()[0]
        assert int(memory) * 1024 < program.MEMORY
        assert hook.process.pid == pid, "it was not restarted"
    assert caplog.text.count("it starts again") == 0
