"""A Dask scheduler and workers as processes of their own, so that they can be killed, and run other versions."""

import json
import os
import subprocess
import sys
import time
from contextlib import contextmanager

from tests.conftest import ROOT


@contextmanager
def scheduler(folder):
    """(address, process id) of a scheduler."""
    file = folder / "scheduler.json"
    with _process("scheduler", "--host", "127.0.0.1", "--port", "0", "--scheduler-file", str(file)) as process:
        yield _address(file), process.pid


@contextmanager
def worker(address, folder, before=(), **environment):
    """One worker without a nanny: nothing starts it again. ``before`` is the command that starts it."""
    options = ("--no-nanny", "--nthreads", "1", "--local-directory", str(folder), "--death-timeout", "600")
    with _process("worker", address, *options, before=before, **environment) as process:
        yield process.pid


@contextmanager
def _process(kind, *arguments, before=(), **environment):
    command = [*before, sys.executable, "-m", f"distributed.cli.dask_{kind}", *arguments, "--no-dashboard"]
    quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    path = environment.pop("PYTHONPATH", str(ROOT))
    process = subprocess.Popen(command, env=os.environ | {"PYTHONPATH": path} | environment, cwd="/", **quiet)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def _address(file):
    while True:
        try:
            return json.loads(file.read_text())["address"]
        except (OSError, ValueError):
            time.sleep(0.05)
