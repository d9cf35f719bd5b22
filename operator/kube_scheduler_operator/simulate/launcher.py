"""Starts kube-scheduler in the container of its own image, so that no other container runs it.

An image of kube-scheduler has that program and nothing else, no shell, and it may be one of users.
So this module runs there with the interpreter of the operator's image (`launcher_files.py`). It
imports what is built into the interpreter or frozen, and nothing of this package.

A connection is a process. The client sends an `encoded` order, whose fields are separated as in
/proc/PID/cmdline: a parser of JSON would be twenty more modules. The process then writes to the
connection itself, and has ended when the connection is closed. If the client closes it first, the
process is killed with its group. The address is a Unix socket in the abstract namespace: containers
of a Pod share it with their network, so they need no directory in common.

A program of the same container can do what this one does. Its client trusts nothing of it.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # signal imports a dozen modules
import _socket
import errno
import os
import select
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Final

LARGEST: Final = 4 * 2**20
"""Bytes of an order; a configuration comes from a ConfigMap, which has 1 MiB at most."""
STDOUT: Final = 1
STDERR: Final = 2
REFUSED: Final = "cannot start "
"""Prefix of the launcher's own messages to a connection."""

_MOST: Final = 16
"""Most open connections; further ones are refused."""
_BACKLOG: Final = 128
_LONGEST_LENGTH: Final = 8
"""Digits of `LARGEST`, and a line feed."""
_CHUNK: Final = 2**16
_IGNORED_BY_PYTHON: Final = (_signal.SIGPIPE, _signal.SIGXFSZ)
_INIT: Final = 1
"""The first process of a container; when it ends, all others end."""


class Order:
    __slots__ = ("arguments", "files", "folder", "output")

    def __init__(
        self, folder: str, output: int, arguments: Sequence[str], files: Mapping[str, str]
    ) -> None:
        self.folder = folder  # a directory to make for it, and to remove after its end; its HOME
        self.output = output  # which of its outputs is the connection, `STDOUT` or `STDERR`
        self.arguments = arguments  # its arguments, after the command
        self.files = files  # the contents of files in the folder, by name


def encoded(order: Order) -> bytes:
    """Return an order in bytes: their number in decimal, a line feed, and fields separated by NUL.

    Raises:
        ValueError: it is too large, or a field has a NUL.
    """
    fields = [order.folder, str(order.output), str(len(order.arguments)), *order.arguments]
    for name, content in order.files.items():
        fields += (name, content)
    if any("\0" in field for field in fields):
        raise ValueError("an argument or a file has a NUL character")
    body = "\0".join(fields).encode()
    if len(body) > LARGEST:
        raise ValueError(f"arguments and files have {len(body)} bytes; the limit is {LARGEST}")
    return b"%d\n%b" % (len(body), body)


def decoded(received: bytes) -> Order | None:
    """Return the order in what was received; None: it is not complete yet.

    Raises:
        ValueError: it is too large or damaged.
    """
    head, newline, body = received.partition(b"\n")
    if len(head) >= _LONGEST_LENGTH or not (head.isdigit() or not received):
        raise ValueError("the order does not begin with its length")
    if not newline:
        return None
    if int(head) > LARGEST:
        raise ValueError(f"the order has {int(head)} bytes; the limit is {LARGEST}")
    if len(body) < int(head):
        return None
    try:
        folder, output, count, *rest = body.decode().split("\0")
        if not 0 <= int(count) <= len(rest):
            raise ValueError(count)
        arguments, files = rest[: int(count)], rest[int(count) :]
        order = Order(
            folder, int(output), arguments, dict(zip(files[::2], files[1::2], strict=True))
        )
    except ValueError:
        raise ValueError("the order is damaged") from None
    if len(body) > int(head) or order.output not in (STDOUT, STDERR):
        raise ValueError("the order is damaged")
    return order


class _Connection:
    """A client, and its process once it has sent an order."""

    __slots__ = ("folder", "pid", "received", "socket")

    def __init__(self, socket: _socket.socket) -> None:
        self.socket = socket
        self.received = b""
        self.pid = 0
        self.folder = ""


class Launcher:
    """Starts processes for its clients until SIGTERM.

    `address` is as in `socket_address`; the arguments of an order follow `command`.
    """

    def __init__(self, address: str, command: Sequence[str]) -> None:
        self._command = command
        self._connections: dict[int, _Connection] = {}
        self._poll = select.poll()
        self._listening = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
        self._listening.setblocking(False)
        self._listening.bind(socket_address(address))
        self._signals, writing = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        _signal.set_wakeup_fd(writing)
        for number in (_signal.SIGTERM, _signal.SIGINT, _signal.SIGCHLD):
            _signal.signal(number, _noted)

    def run(self) -> None:
        """Serve until SIGTERM; then no process is left."""
        self._listening.listen(_BACKLOG)
        self._poll.register(self._listening.fileno(), select.POLLIN)
        self._poll.register(self._signals, select.POLLIN)
        try:
            while self._turn():
                pass
        finally:
            for connection in self._connections.values():
                _kill(connection)
                _remove(connection.folder)

    def _turn(self) -> bool:
        """Handle what has happened; return whether to go on."""
        connects = False
        for descriptor, happened in self._poll.poll():
            if descriptor == self._signals:
                if any(number != _signal.SIGCHLD for number in os.read(descriptor, _CHUNK)):
                    return False
                self._reap()
            elif descriptor == self._listening.fileno():
                connects = True
            elif (connection := self._connections.get(descriptor)) is not None:
                self._serve(connection, happened)
        if connects:  # last: connections that have been closed do not count
            self._accept()
        return True

    def _accept(self) -> None:
        try:
            descriptor, _ = self._listening._accept()  # type: ignore[attr-defined]  # undocumented
        except OSError:
            return  # the client is gone already
        # It stays blocking: its process writes to it.
        socket = _socket.socket(fileno=descriptor)
        if len(self._connections) >= _MOST:
            socket.close()
            return
        self._connections[descriptor] = _Connection(socket)
        self._poll.register(descriptor, select.POLLIN)

    def _serve(self, connection: _Connection, happened: int) -> None:
        if connection.pid:  # its client is gone; its end is a signal
            self._poll.unregister(connection.socket.fileno())
            _kill(connection)
            return
        try:
            part = (
                connection.socket.recv(_CHUNK, _socket.MSG_DONTWAIT)
                if happened & select.POLLIN
                else b""
            )
        except OSError as error:
            if error.errno == errno.EAGAIN:
                return
            part = b""
        connection.received += part
        try:
            order = decoded(connection.received)
            if order is not None:
                self._start(connection, order)
            elif not part:
                self._end(connection)
        except (OSError, ValueError) as error:
            self._refuse(connection, error)

    def _start(self, connection: _Connection, order: Order) -> None:
        """Start the process of a connection.

        Raises:
            OSError: it cannot be started.
        """
        connection.received = b""
        os.mkdir(order.folder, 0o700)
        connection.folder = order.folder
        for name, content in order.files.items():
            _write(f"{order.folder}/{name}", content.encode())
        descriptor = connection.socket.fileno()
        other = STDOUT + STDERR - order.output
        connection.pid = os.posix_spawnp(
            self._command[0],
            [*self._command, *order.arguments],
            {**os.environ, "HOME": order.folder, "TZ": "UTC"},
            file_actions=[
                (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                (os.POSIX_SPAWN_OPEN, other, os.devnull, os.O_WRONLY, 0),
                (os.POSIX_SPAWN_DUP2, descriptor, order.output),
            ],
            setsid=True,
            setsigdef=_IGNORED_BY_PYTHON,
        )
        self._poll.modify(descriptor, select.POLLRDHUP)

    def _refuse(self, connection: _Connection, error: Exception) -> None:
        reason = error.strerror if isinstance(error, OSError) else error
        text = f"{REFUSED}{' '.join(self._command)}: {reason}\n"
        try:
            connection.socket.send(text.encode(), _socket.MSG_DONTWAIT)
        except OSError:
            pass  # the client is gone
        self._end(connection)

    def _reap(self) -> None:
        """End the connections of processes that have ended."""
        for pid in _ended():
            for connection in tuple(self._connections.values()):
                if connection.pid == pid:
                    _kill(connection)  # the rest of its group, while its number is taken
                    self._end(connection)
            os.waitpid(pid, 0)
        if os.getpid() == _INIT and not any(client.pid for client in self._connections.values()):
            try:
                os.kill(-1, _signal.SIGKILL)  # what has left its group
            except ProcessLookupError:
                pass

    def _end(self, connection: _Connection) -> None:
        """Remove a folder and close its connection, also for processes that have inherited it."""
        _remove(connection.folder)
        descriptor = connection.socket.fileno()
        del self._connections[descriptor]
        try:
            self._poll.unregister(descriptor)
        except KeyError:
            pass  # its client was gone first
        try:
            connection.socket.shutdown(_socket.SHUT_RDWR)
        except OSError:
            pass
        connection.socket.close()


def socket_address(text: str) -> str:
    """Return the address that a text is: `@NAME` in the abstract namespace, or a path."""
    return f"\0{text[1:]}" if text.startswith("@") else text


def _noted(_number: int, _frame: object) -> None:
    """Do nothing: the number is in the pipe of signals."""


def _ended() -> Iterator[int]:
    """Yield processes that have ended; the caller releases each."""
    while True:
        try:
            child = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            return
        if child is None:
            return
        yield child.si_pid


def _kill(connection: _Connection) -> None:
    if connection.pid:
        try:
            os.killpg(connection.pid, _signal.SIGKILL)
        except OSError:
            pass  # all of it has ended


def _write(path: str, content: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        while content:
            content = content[os.write(descriptor, content) :]
    finally:
        os.close(descriptor)


def _remove(folder: str) -> None:
    if not folder:
        return
    for where, folders, files in os.walk(folder, topdown=False):
        for name in (*files, *folders):
            _remove_one(f"{where}/{name}")
    _remove_one(folder)


def _remove_one(path: str) -> None:
    for remove in (os.unlink, os.rmdir):
        try:
            remove(path)
        except OSError:
            continue
        return


if __name__ == "__main__":
    Launcher(sys.argv[1], sys.argv[2:]).run()
