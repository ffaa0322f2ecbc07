"""Programs that start in milliseconds: a process that has imported what commands import forks for every one of them.

``Warm.programs`` is a folder for ``PATH`` with a ``wattribute``; ``Warm.python(code)`` is the command line of a Python
that runs it. Half of what a short command costs is importing Polars, PyArrow and Altair, and pages of documentation
have hundreds of commands. A command has streams, folder, environment and session of its own, and signals reach it.
"""

import json
import os
import signal
import socket
import subprocess
import sys
import time
import types
from collections.abc import Callable, Mapping
from contextlib import suppress
from importlib import import_module
from pathlib import Path

MODULES = (
    "numpy",
    "polars",
    "pyarrow.parquet",
    "altair",
    "vl_convert",
    "wattribute.cli",
    "wattribute.engines",
    "wattribute.readers.otf2",
    "wattribute.views.plot",
    "wattribute.views.report",
)
FORWARDED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1)
CLIENT = """#!{python} -IS
import sys
sys.path.insert(0, {root!r})
from tests.warm import call
call({address!r}, ["wattribute", *sys.argv[1:]])
"""


class Warm:
    """The process that forks, with its socket and the folder of programs in ``folder``."""

    def __init__(self, folder: Path) -> None:
        self.programs = folder / "programs"
        self.programs.mkdir()
        self.address = str(folder / "socket")
        program = self.programs / "wattribute"
        root = str(Path(__file__).parents[1])
        program.write_text(CLIENT.format(python=sys.executable, root=root, address=self.address))
        program.chmod(0o755)
        command = [sys.executable, "-c", "from tests.warm import main; main()", self.address]
        self._process = subprocess.Popen(command, cwd=root, stdout=subprocess.PIPE)
        assert self._process.stdout.readline() == b"ready\n"

    def python(self, code: str) -> list[str]:
        order = f"from tests.warm import call; call({self.address!r}, ['python', sys.argv[1]])"
        where = f"import sys; sys.path.insert(0, {str(Path(__file__).parents[1])!r}); "
        return [sys.executable, "-IS", "-c", where + order, code]

    def close(self) -> None:
        self._process.terminate()
        self._process.communicate()


def call(address: str, words: list[str]) -> None:
    """Have a command run elsewhere with what is this process's, pass signals on, and end as it ended."""
    with socket.socket(socket.AF_UNIX) as server:
        server.connect(address)
        order = {"words": words, "folder": os.getcwd(), "environment": dict(os.environ)}
        content = json.dumps(order).encode()
        socket.send_fds(server, [len(content).to_bytes(4, "little")], [0, 1, 2])
        server.sendall(content)
        answers = server.makefile("r")
        pid = int(answers.readline())
        for number in FORWARDED:
            signal.signal(number, lambda number, _: _pass_on(pid, number))
        status = int(answers.readline())
    if status < 0:
        with suppress(OSError):  # of SIGKILL
            signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    os._exit(status)


def _pass_on(pid: int, number: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, number)


def main() -> None:
    for name in MODULES:
        import_module(name)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(sys.argv[1])
        listening.listen(16)
        print("ready", flush=True)
        while True:
            client, _ = listening.accept()
            if not os.fork():
                break
            client.close()
            with suppress(ChildProcessError):
                while os.waitpid(-1, os.WNOHANG)[0]:
                    pass
    command = _command(client)  # in another process: its end is that of an interpreter
    command()


def _command(client: socket.socket) -> Callable[[], None]:
    """What to do in the process of a command, from which alone this returns; the one before it waits for its end."""
    head, files, _, _ = socket.recv_fds(client, 4, 3)
    content = b""
    while len(content) < int.from_bytes(head, "little"):
        content += client.recv(1 << 16)
    order = json.loads(content)
    if pid := os.fork():
        for file in (0, 1, 2, *files):  # or else a pipe had one end more
            os.close(file)
        client.sendall(b"%d\n" % pid)
        client.sendall(b"%d\n" % os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
        os._exit(0)
    os.setsid()
    client.close()
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    _become(order["words"], order["folder"], order["environment"])
    module = sys.modules["__main__"] = types.ModuleType("__main__")
    kind, *words = order["words"]
    if kind == "python":
        sys.argv, sys.path[0] = ["-c"], ""
        return lambda: exec(compile(words[0], "<string>", "exec"), module.__dict__)
    from wattribute.__main__ import main

    sys.argv = [str(Path(sys.executable).with_name("wattribute")), *words]
    return main


def _become(words: list[str], folder: str, environment: Mapping[str, str]) -> None:
    """Streams, folder and environment as at the start of a process."""
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    time.tzset()
    sys.stdin, sys.stdout, sys.stderr = open(0), open(1, "w"), open(2, "w", buffering=1)  # noqa: SIM115
    sys.__stdin__, sys.__stdout__, sys.__stderr__ = sys.stdin, sys.stdout, sys.stderr
