"""The certificate of a simulation's Pod, and the hash by which it is known."""

from __future__ import annotations

import asyncio
import hashlib
import ssl
from pathlib import Path

from kube_scheduler_operator.__main__ import main
from kube_scheduler_operator.simulate.identity import make_identity, tls_context


async def test_the_hash_is_that_of_the_certificate_that_is_served(tmp_path: Path) -> None:
    digest = make_identity(tmp_path)
    server = await asyncio.start_server(
        lambda _reader, writer: writer.close(), "127.0.0.1", 0, ssl=tls_context(tmp_path)
    )
    async with server:
        port = server.sockets[0].getsockname()[1]
        trusting = ssl._create_unverified_context()
        _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=trusting)
        served = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
        writer.close()
    assert hashlib.sha256(served).hexdigest() == digest


def test_the_key_is_readable_by_its_owner_only_and_another_one_each_time(tmp_path: Path) -> None:
    first, second = tmp_path / "a", tmp_path / "b"
    for folder in (first, second):
        folder.mkdir()
    assert make_identity(first) != make_identity(second)
    assert (first / "tls.key").stat().st_mode & 0o777 == 0o600


def test_the_program_leaves_the_hash_as_its_termination_message(tmp_path: Path) -> None:
    message = tmp_path / "termination-log"
    arguments = [f"--directory={tmp_path}", f"--termination-message={message}"]
    assert main(["simulation-certificate", *arguments]) == 0
    assert len(bytes.fromhex(message.read_text())) == 32
