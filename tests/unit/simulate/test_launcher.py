"""The launcher starts kube-scheduler in its own image, for a client that trusts nothing of it."""

from __future__ import annotations

import asyncio
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kube_scheduler_operator.base.limits import FOREIGN_LINE
from kube_scheduler_operator.simulate import process
from kube_scheduler_operator.simulate.launcher import (
    LARGEST,
    STDERR,
    STDOUT,
    Order,
    decoded,
    encoded,
    socket_address,
)
from kube_scheduler_operator.simulate.launcher_files import copy_launcher, launcher_command
from kube_scheduler_operator.simulate.process import (
    KubeSchedulerProcess,
    LaunchedProgram,
    SimulationError,
    binary_version,
)

URL = "http://127.0.0.1:1"
Launch = Callable[..., LaunchedProgram]


@pytest.fixture(scope="module")
def copied(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The launcher with its interpreter."""
    folder = tmp_path_factory.mktemp("copied") / "launcher"
    copy_launcher(folder)
    return folder


class Launchers:
    """Launchers that tests have started."""

    def __init__(self, copied: Path, folders: Path) -> None:
        self.started: list[subprocess.Popen[bytes]] = []
        self.program = LaunchedProgram(f"@test-{secrets.token_hex(8)}", str(folders))
        self._copied = copied

    def start(
        self, command: Sequence[str], *prefix: str, where: Path | None = None, path: str = ""
    ) -> LaunchedProgram:
        """A launcher in an empty environment; it listens."""
        own = launcher_command(where or self._copied, self.program.address, command)
        environment = {"PATH": path} if path else {}
        self.started.append(subprocess.Popen([*prefix, *own], env=environment, cwd="/"))
        for _ in range(1000):
            with suppress(OSError), self.connect():
                return self.program
            time.sleep(0.01)
        raise AssertionError("it does not listen")

    def python(self, code: str) -> LaunchedProgram:
        """A launcher that starts a program in Python."""
        return self.start([sys.executable, "-I", "-S", "-c", code])

    def connect(self) -> socket.socket:
        """A client of the launcher."""
        client = socket.socket(socket.AF_UNIX)
        client.settimeout(20)
        try:
            client.connect(socket_address(self.program.address))
        except BaseException:
            client.close()
            raise
        return client

    def close(self) -> None:
        """End all of them."""
        for started in self.started:
            started.terminate()
            started.wait(20)


@pytest.fixture
def launchers(copied: Path, tmp_path: Path) -> Iterator[Launchers]:
    made = Launchers(copied, tmp_path)
    yield made
    made.close()


def everything(client: socket.socket) -> bytes:
    """What a client receives until its connection is closed."""
    received = b""
    while part := client.recv(2**16):
        received += part
    return received


async def first_line(program: LaunchedProgram) -> tuple[KubeSchedulerProcess, str]:
    """A process that runs, and the first line of its log."""
    lines: asyncio.Queue[bytes] = asyncio.Queue()
    made = KubeSchedulerProcess(program, lines.put_nowait)
    await made.start({}, URL)
    return made, (await asyncio.wait_for(lines.get(), 20)).decode(errors="replace")


def runs(pid: int) -> bool:
    """Whether a process runs; one that has ended may wait for its parent."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def folders(program: LaunchedProgram) -> list[Path]:
    """The folders of processes."""
    return list(Path(program.folders).iterdir())


async def until(met: Callable[[], bool]) -> bool:
    """Whether something happens."""
    for _ in range(2000):
        if met():
            return True
        await asyncio.sleep(0.01)
    return False


def ends(*pids: int) -> bool:
    """Whether processes end."""
    for _ in range(1000):
        if not any(map(runs, pids)):
            return True
        time.sleep(0.01)
    return False


# --- the program that is started ------------------------------------------------------------------

_SHOWS = """
import os, sys
folder = os.environ["HOME"]
sys.stderr.write(" ".join(sys.argv[1:]).replace(folder, "HOME") + "\\n")
sys.stderr.write(open(sys.argv[1].partition("=")[2]).read().replace(folder, "HOME") + "\\n")
sys.stderr.write(f"{os.stat(folder).st_mode & 0o777:o} {sorted(os.listdir(folder))}\\n")
sys.stderr.write(os.readlink("/proc/self/root") if os.path.exists("/proc/self") else "no /proc")
"""


async def test_it_needs_nothing_of_the_image_that_it_runs_in(
    launchers: Launchers, copied: Path, tmp_path: Path
) -> None:
    root = tmp_path / "image"
    (root / "dev").mkdir(parents=True)
    (root / "dev/null").touch()
    (root / "tmp").mkdir()
    for name in ("launcher", "program"):
        shutil.copytree(copied, root / name)
    # Without the right to change the root, the place is another one and the environment is empty.
    inside = os.geteuid() == 0
    top = Path("/") if inside else root
    folders = "/tmp" if inside else str(root / "tmp")
    launchers.program = LaunchedProgram(launchers.program.address, folders)
    program = launcher_command(top / "program", "", ())
    own = [*program[: program.index("-I")], "-I", "-S", "-c", _SHOWS]
    prefix = (shutil.which("chroot") or "/usr/sbin/chroot", str(root)) if inside else ()
    launchers.start(own, *prefix, where=top / "launcher")
    lines: list[bytes] = []
    made = KubeSchedulerProcess(launchers.program, lines.append)
    await made.start({"profiles": []}, URL, ["--v=2"])
    await asyncio.wait_for(made.ended.wait(), 20)
    await made.stop()
    arguments, config, folder, proc = (line.decode() for line in lines)
    assert arguments == "--config=HOME/config.json --secure-port=0 --v=2"
    assert '"kubeconfig": "HOME/kubeconfig"' in config
    assert folder == "700 ['config.json', 'kubeconfig']"
    assert proc == ("no /proc" if inside else "/")
    assert list((root / "tmp").iterdir()) == []


def test_its_command_is_resolved_as_a_container_runtime_does(
    launchers: Launchers, tmp_path: Path
) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/kube-scheduler").symlink_to("/bin/sh")
    code = "tr '\\0' ' ' </proc/$$/cmdline"
    path = f"{tmp_path}/bin:/usr/bin:/bin"
    program = launchers.start(["kube-scheduler", "-c", code], path=path)
    assert program.version() == f"kube-scheduler -c {code} --version "


async def test_a_program_that_the_image_does_not_have_is_named(launchers: Launchers) -> None:
    program = launchers.start(["hyperkube", "kube-scheduler"])
    text = "cannot start hyperkube kube-scheduler: No such file or directory"
    with pytest.raises(SimulationError, match=text):
        binary_version(program)
    made = KubeSchedulerProcess(program, lambda _: None)
    await made.start({}, URL)
    await asyncio.wait_for(made.ended.wait(), 20)
    assert made.failure() == text
    await made.stop()


def test_the_version_is_what_the_program_writes(launchers: Launchers) -> None:
    program = launchers.python(
        "import sys; assert sys.argv[1:] == ['--version']; "
        "sys.stderr.write('v9.9.9'); print('Kubernetes v1.35.4')"
    )
    assert str(binary_version(program)) == "v1.35.4"
    assert folders(program) == []


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("print('x' * 10**7)", "'xxx"),
        ("", "'nothing' is not a Kubernetes version"),
        ("print('Kubernetes \\x1b[2J')", r"'\x1b[2J' is not a Kubernetes version"),
    ],
)
def test_another_text_is_not_a_version(launchers: Launchers, code: str, text: str) -> None:
    with pytest.raises(SimulationError) as error:
        binary_version(launchers.python(code))
    before = "the kube-scheduler of the operand's image does not report its version: "
    assert str(error.value).startswith(before + text)
    assert len(str(error.value)) <= len(before) + FOREIGN_LINE


# --- its end --------------------------------------------------------------------------------------

_WITH_CHILD = """
import os, sys, time
child = os.fork()
if child:
    sys.stderr.write(f"{os.getpid()} {child}\\n")
    sys.stderr.flush()
END
time.sleep(600)
"""


@pytest.mark.parametrize("way", ["stop", "lost", "terminated"])
async def test_a_process_ends_with_its_group_and_its_folder(launchers: Launchers, way: str) -> None:
    program = launchers.python(_WITH_CHILD.replace("END", ""))
    made, line = await first_line(program)
    pids = [int(word) for word in line.split()]
    assert all(map(runs, pids))
    assert len(folders(program)) == 1
    if way == "stop":
        await made.stop()
    elif way == "lost":
        assert made._started is not None
        await made._started.resources.aclose()
    else:
        launchers.started[0].send_signal(signal.SIGTERM)
        assert await asyncio.to_thread(launchers.started[0].wait, 20) == 0
    assert await asyncio.to_thread(ends, *pids)
    assert await until(lambda: not folders(program))
    await made.stop()


async def test_the_end_of_a_process_is_the_end_of_its_connection(launchers: Launchers) -> None:
    """Also if a child of it has the connection."""
    program = launchers.python(_WITH_CHILD.replace("END", "if child: os._exit(0)"))
    made, line = await first_line(program)
    await asyncio.wait_for(made.ended.wait(), 20)
    assert await asyncio.to_thread(ends, *map(int, line.split()))
    await made.stop()


async def test_two_processes_at_a_time_have_nothing_in_common(launchers: Launchers) -> None:
    code = "import os, time; os.write(2, b'%d\\n' % os.getpid()); time.sleep(600)"
    program = launchers.python(code)
    one, first = await first_line(program)
    two, second = await first_line(program)
    assert len(folders(program)) == 2
    await one.stop()
    assert await asyncio.to_thread(ends, int(first))
    assert runs(int(second))
    assert not two.ended.is_set()
    await two.stop()
    assert await asyncio.to_thread(ends, int(second))


async def test_without_a_launcher_the_container_does_not_run() -> None:
    nothing = LaunchedProgram(f"@test-{secrets.token_hex(8)}")
    with pytest.raises(SimulationError, match="container of the operand's image does not run"):
        await nothing.wait(0.05)
    with pytest.raises(SimulationError, match="container of the operand's image does not run"):
        await nothing.start({}, URL)
    with pytest.raises(SimulationError, match="does not report its version"):
        binary_version(nothing)


async def test_a_launcher_that_reads_nothing_does_not_keep_a_simulation_from_ending() -> None:
    program = LaunchedProgram(f"@test-{secrets.token_hex(8)}")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(socket_address(program.address))
        listening.listen()
        made = KubeSchedulerProcess(program, lambda _: None)
        await made.start({"x": "x" * (LARGEST // 2)}, URL)
        await asyncio.wait_for(made.stop(), 20)
    assert made.ended.is_set()


# --- what is sent to it ---------------------------------------------------------------------------

texts = st.text(st.characters(exclude_characters="\0", codec="utf-8"))


@given(texts, st.sampled_from([STDOUT, STDERR]), st.lists(texts), st.dictionaries(texts, texts))
def test_an_order_is_received_as_it_was_sent(
    folder: str, output: int, arguments: list[str], files: dict[str, str]
) -> None:
    sent = encoded(Order(folder, output, arguments, files))
    found = decoded(sent)
    assert found is not None
    assert (found.folder, found.output, found.arguments, found.files) == (
        folder,
        output,
        arguments,
        files,
    )
    assert all(decoded(sent[:end]) is None for end in range(len(sent)))


def test_an_order_that_is_too_large_is_not_sent() -> None:
    with pytest.raises(ValueError, match="the limit is 4194304"):
        encoded(Order("/x", STDERR, [], {"config.json": "x" * LARGEST}))
    with pytest.raises(ValueError, match="NUL"):
        encoded(Order("/x", STDERR, ["a\0b"], {}))


async def test_a_configuration_that_is_too_large_is_an_error(launchers: Launchers) -> None:
    program = launchers.python("")
    with pytest.raises(SimulationError, match="kube-scheduler cannot be started: arguments and"):
        await program.start({"x": "x" * LARGEST}, URL)


@pytest.mark.parametrize(
    ("sent", "message"),
    [
        (b'{"arguments": []}\n', "does not begin with its length"),
        (b"x" * 2**20, "does not begin with its length"),
        (b"1" * 100, "does not begin with its length"),
        (b"\n", "does not begin with its length"),
        (b"-1\n", "does not begin with its length"),
        (b"%d\n" % (LARGEST + 1), "the limit is 4194304"),
        (b"3\nabc", "the order is damaged"),
        (b"7\n/x\x001\x00-1", "the order is damaged"),
        (b"6\n/x\x001\x001", "the order is damaged"),
        (b"10\n/x\x001\x000\x00one", "the order is damaged"),
        (b"6\n/x\x007\x000", "the order is damaged"),
        (b"2\n\xff\xfe", "the order is damaged"),
        (b"6\n/x\x001\x000rest", "the order is damaged"),
    ],
)
def test_a_damaged_order_is_refused_and_the_next_one_is_not(
    launchers: Launchers, sent: bytes, message: str
) -> None:
    program = launchers.python("print('Kubernetes v1.35.4')")
    with launchers.connect() as client:
        with suppress(ConnectionError):
            client.sendall(sent)
        received = b""
        with suppress(ConnectionError):  # what was sent after the error is not read
            while part := client.recv(2**16):
                received += part
    assert received.decode().startswith("cannot start ")
    assert message in received.decode()
    assert str(binary_version(program)) == "v1.35.4"


def test_an_order_may_arrive_in_pieces(launchers: Launchers) -> None:
    program = launchers.python("print('here')")
    with launchers.connect() as client:
        for byte in encoded(Order(f"{program.folders}/x", STDOUT, [], {})):
            client.sendall(bytes((byte,)))
        assert everything(client) == b"here\n"


def test_a_client_that_sends_nothing_keeps_no_place(launchers: Launchers) -> None:
    program = launchers.python("print('Kubernetes v1.35.4')")
    for _ in range(100):
        with launchers.connect() as client:
            client.sendall(b"12")
    assert str(binary_version(program)) == "v1.35.4"


def test_a_client_is_served_if_others_close_at_the_same_moment(launchers: Launchers) -> None:
    program = launchers.python("print('here')")
    others = [launchers.connect() for _ in range(17)]
    assert others[-1].recv(1) == b"", "as many as are possible"
    launchers.started[0].send_signal(signal.SIGSTOP)
    stat = Path(f"/proc/{launchers.started[0].pid}/stat")
    while stat.read_text().rpartition(")")[2].split()[0] != "T":
        time.sleep(0.01)
    for other in others:
        other.close()
    with launchers.connect() as client:
        client.sendall(encoded(Order(f"{program.folders}/x", STDOUT, [], {})))
        launchers.started[0].send_signal(signal.SIGCONT)
        assert everything(client) == b"here\n"


def test_the_number_of_clients_is_limited(launchers: Launchers) -> None:
    launchers.python("")
    clients = [launchers.connect() for _ in range(17)]
    clients[-1].settimeout(20)
    assert clients[-1].recv(1) == b""
    for client in clients:
        client.close()


# --- what comes back ------------------------------------------------------------------------------


async def test_of_endless_lines_the_last_ones_are_kept(launchers: Launchers) -> None:
    code = "import os\nwhile True: os.write(2, b'E' + b'x' * 5000 + b'\\n')"
    made, _ = await first_line(launchers.python(code))
    assert await until(lambda: len(made.lines) == process._KEPT_LINES)
    assert max(map(len, made.lines)) == FOREIGN_LINE
    await asyncio.wait_for(made.stop(), 20)
    assert made.ended.is_set()
    assert len(made.lines) == process._KEPT_LINES


async def test_an_endless_line_is_cut(
    launchers: Launchers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "_LONGEST_LINE", 10_000)
    code = (
        "import os\n"
        "for _ in range(300): os.write(2, b'x' * 10_000)\n"
        "os.write(2, b'\\nnext\\n')\n"
        "while True: os.write(2, b'y' * 10_000)"
    )
    lines: list[bytes] = []
    made = KubeSchedulerProcess(launchers.python(code), lines.append)
    await made.start({}, URL)
    assert await until(lambda: len(lines) == 3)
    assert not made.ended.is_set()
    assert lines == [b"x" * 10_000, b"next", b"y" * 10_000]
    await asyncio.wait_for(made.stop(), 20)


async def test_its_text_does_not_control_a_terminal(launchers: Launchers) -> None:
    code = "import os; os.write(2, b'E1 \\x1b[2J\\xc2\\x9b31m\\xff red\\r\\t.\\n')"
    made, _ = await first_line(launchers.python(code))
    await asyncio.wait_for(made.ended.wait(), 20)
    assert made.failure() == r"E1 \u001b[2J\u009b31m" "\N{REPLACEMENT CHARACTER}" r" red\r\t."
    await made.stop()
