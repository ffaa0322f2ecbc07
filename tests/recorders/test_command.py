"""A child as its caller would have run it: exit codes, signals, groups, streams. Each in a process of its own."""

import json
import os
import signal
import subprocess
import sys
import textwrap

import pytest

from tests.conftest import until

RUNNER = """
import json, sys
from wattribute.recorders.command import run_child
ended = run_child(sys.argv[1:], started=lambda pid, ns: print("started", flush=True) if "-v" in sys.orig_argv else None)
print(json.dumps([ended.exit_code, ended.duration_s, ended.cpu_s, ended.error]), file=sys.stderr)
"""


def run(*command, **how):
    done = subprocess.run([sys.executable, "-c", RUNNER, *command], capture_output=True, text=True, check=True, **how)
    return done.stdout, json.loads(done.stderr.splitlines()[-1])


@pytest.mark.parametrize(
    ("script", "code"),
    [
        ("exit 0", 0),
        ("exit 3", 3),
        ("exit 255", 255),
        ("kill -TERM $$", 143),
        ("kill -KILL $$", 137),
        ("kill -INT $$", 130),
    ],
)
def test_exit_codes_and_signals(script, code):
    assert run("sh", "-c", script)[1][0] == code


def test_a_command_that_is_not_there_or_may_not_run(tmp_path):
    assert run("/no/such/program")[1][0] == 127
    assert run("no-such-program-anywhere")[1][3] == "no-such-program-anywhere: command not found"
    (tmp_path / "data").write_text("text")
    assert run(str(tmp_path / "data"))[1][0] == 126
    assert run(str(tmp_path))[1][0] == 126


def test_a_script_without_a_first_line_runs_as_in_a_shell(tmp_path):
    script = tmp_path / "script"
    script.write_text("echo from $1; exit 4\n")
    script.chmod(0o755)
    out, (code, *_) = run(str(script), "here")
    assert (out, code) == ("from here\n", 4)


def test_streams_and_environment_pass_through():
    done = subprocess.run(
        [sys.executable, "-c", RUNNER, "sh", "-c", "cat; echo $X >&2"],
        input=b"\x00bytes\xff", capture_output=True, check=True, env={**os.environ, "X": "told"},
    )  # fmt: skip
    assert done.stdout == b"\x00bytes\xff"
    assert done.stderr.startswith(b"told\n")


def test_ignored_signals_of_python_are_as_the_child_expects():
    # Python ignores SIGPIPE (13) and SIGXFSZ (25); a child must not: the mask of ignored signals has neither bit
    out, _ = run("sh", "-c", "grep SigIgn /proc/self/status; grep SigBlk /proc/self/status")
    ignored, blocked = (int(line.split()[1], 16) for line in out.splitlines())
    assert ignored & (1 << 12 | 1 << 24) == 0
    assert blocked == 0


def test_memory_of_a_child_is_not_that_of_its_launcher():
    """Linux counts the launcher's memory for its child, which begins in it: what is not above it is not known."""
    peaks = """
    import sys
    from wattribute.recorders.command import run_child
    print(run_child(["true"]).max_rss_bytes, run_child([sys.executable, "-c", "b'x' * (200 << 20)"]).max_rss_bytes)
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(peaks)], capture_output=True, text=True, check=True)
    small, large = done.stdout.split()
    assert small == "None"
    assert int(large) > 200 << 20


def test_cpu_time_of_all_descendants_is_known():
    burn = f"{sys.executable} -c 'x = sum(i for i in range(3_000_000))'"
    _, (_, duration_s, cpu_s, _) = run("sh", "-c", f"{burn} & {burn} & wait")
    assert cpu_s > 0.05
    assert duration_s > 0.02


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1])
@pytest.mark.parametrize("to_group", [False, True])
def test_a_signal_reaches_the_child_exactly_once(number, to_group, tmp_path):
    """Whether sent to us or to our whole group, as `timeout` and batch systems do."""
    child = (
        "import signal, sys, time\n"
        "n = []\n"
        f"signal.signal({int(number)}, lambda *_: n.append(1))\n"
        "print('listening', flush=True)\n"
        "while not n: time.sleep(0.01)\n"
        "time.sleep(0.2)\n"
        "sys.exit(40 + len(n))"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", RUNNER, sys.executable, "-c", child],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    assert process.stdout.readline() == "listening\n"
    (os.killpg if to_group else os.kill)(process.pid, number)
    _, told = process.communicate()
    assert json.loads(told.splitlines()[-1])[0] == 41


def test_a_group_is_ended_with_its_grandchildren(tmp_path):
    process = subprocess.Popen(
        [sys.executable, "-c", RUNNER, "sh", "-c", "sleep 60 & echo $!; wait"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    grandchild = int(process.stdout.readline())
    process.terminate()
    _, told = process.communicate()
    assert json.loads(told.splitlines()[-1])[0] == 143
    until(lambda: not _alive(grandchild))


def _alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_keyboard_signals_on_a_terminal_come_once(tmp_path):
    """On a terminal the child shares our group: Ctrl-C comes from the terminal to both, and is not passed on again."""
    import pty

    child = (
        "import signal, sys, time\n"
        "n = []\n"
        "signal.signal(2, lambda *_: n.append(1))\n"
        "print('listening', flush=True)\n"
        "while not n: time.sleep(0.01)\n"
        "time.sleep(0.3)\n"
        "print('counted', len(n), flush=True)"
    )
    pid, terminal = pty.fork()
    if pid == 0:
        os.execv(sys.executable, [sys.executable, "-c", RUNNER, sys.executable, "-c", child])
    seen = b""
    while b"listening" not in seen:
        seen += os.read(terminal, 1000)
    os.write(terminal, b"\x03")
    try:
        while b"counted" not in seen or not seen.endswith(b"\n"):
            seen += os.read(terminal, 1000)
    except OSError:
        pass
    os.waitpid(pid, 0)
    os.close(terminal)
    assert b"counted 1" in seen
