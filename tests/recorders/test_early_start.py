"""The sampler's process that starts before its order is known."""

import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from tests.conftest import until
from tests.meters.fakes import FakeNvml, Wave
from wattribute.recorders import early_start as boot
from wattribute.recorders.sampling import Sampling

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")


def ended(pid):
    return os.waitpid(pid, 0)[0] == pid


def test_the_first_sampling_takes_it_over(tmp_path):
    (tmp_path / "m.csv").write_text("time_s,x:energy_j\n0,0\n1,10\n")
    boot.early(["--meters", "replay:m.csv"])
    (waiting,) = boot._waiting
    numbers = []
    for _ in range(2):
        sampling = Sampling(None, [f"replay:{tmp_path / 'm.csv'}"])
        sampling.start()
        numbers.append(sampling._process.pid)
        sampling._close()
    assert numbers[0] == waiting.pid != numbers[1]
    assert boot._waiting == []


def test_one_that_gets_no_order_ends_with_us():
    waiting = boot.SamplerProcess(opens_all=True)
    waiting.stdin.close()
    assert ended(waiting.pid)
    waiting.stdout.close()


def test_one_that_does_not_end_is_made_to():
    waiting = boot.SamplerProcess()
    os.kill(waiting.pid, 19)  # stopped
    begin = time.monotonic()
    waiting.close(0.2)
    assert time.monotonic() - begin >= 0.2
    with pytest.raises(ChildProcessError):
        os.waitpid(waiting.pid, 0)


def test_one_that_hangs_while_somebody_listens_is_made_to(tmp_path):
    sampling = Sampling(None, ["model"])
    sampling.start()
    pid = sampling._process.pid
    os.kill(pid, 19)  # stopped, as in a driver that hangs
    closing = threading.Thread(target=sampling._close, daemon=True)
    closing.start()
    closing.join()
    assert not Path(f"/proc/{pid}").exists()


def test_files_for_our_children_are_not_the_samplers(tmp_path):
    with (tmp_path / "open").open("w") as file:
        os.set_inheritable(file.fileno(), True)
        waiting = boot.SamplerProcess()
        until(lambda: "python" in os.readlink(f"/proc/{waiting.pid}/exe"))  # it is past its start
        files = [os.readlink(path) for path in Path(f"/proc/{waiting.pid}/fd").iterdir() if path.exists()]
        waiting.close(5)
    assert str(tmp_path / "open") not in files


@pytest.mark.parametrize(
    ("arguments", "variable", "opens"),
    [
        (["-o", "x", "--", "true"], "", True),
        (["--meters", "model", "true"], "", False),
        (["--meters=model", "true"], "", False),
        (["true"], "OMPI_COMM_WORLD_RANK", False),
    ],
)
def test_meters_are_opened_early_only_where_none_will_be_named(tmp_path, monkeypatch, arguments, variable, opens):
    fake = FakeNvml(tmp_path, [Wave(300)])
    for name, value in fake.environment().items():
        monkeypatch.setenv(name, value)
    if variable:
        monkeypatch.setenv(variable, "3")
    boot.early(arguments)
    waiting = boot._waiting.pop()
    loaded, asleep = False, 0
    while not loaded and asleep < 3:  # it sleeps at its line once it has opened what it may
        time.sleep(0.05)
        loaded = "libnvidia-ml" in Path(f"/proc/{waiting.pid}/maps").read_text()
        asleep += Path(f"/proc/{waiting.pid}/stat").read_text().rpartition(")")[2].split()[0] == "S"
    waiting.close(5)
    assert loaded == opens


def test_signals_and_open_files_are_not_its_business():
    reading, writing = os.pipe()
    os.set_inheritable(writing, True)
    waiting = boot.SamplerProcess()
    os.close(writing)
    for number in (1, 2, 15):
        os.kill(waiting.pid, number)
    os.set_blocking(reading, True)
    assert os.read(reading, 1) == b""  # the other end is closed: nobody else holds it
    os.close(reading)
    order = {"folder": None, "meters": None, "interval_s": None, "live_s": None, "about": {}, "shares": ""}
    waiting.stdin.write(json.dumps(order).encode() + b"\n")
    waiting.stdin.flush()
    assert "ready" in json.loads(waiting.stdout.readline())
    assert os.getsid(waiting.pid) == waiting.pid  # a session of its own: no terminal's keyboard
    waiting.close(5)


def test_closed_streams_stay_closed_for_the_command(tmp_path):
    code = "import os; print([os.path.exists(f'/proc/self/fd/{n}') for n in range(3)], file=open('told', 'w'))"
    run = f'"$0" -m wattribute run --quiet -o x.watt -- "$0" -I -S -c "{code}" <&- >&-'
    subprocess.run(["sh", "-c", run, sys.executable], cwd=tmp_path, check=True)
    bare = f'"$0" -I -S -c "{code}" <&- >&-'
    told = (tmp_path / "told").read_text()
    subprocess.run(["sh", "-c", bare, sys.executable], cwd=tmp_path, check=True)
    assert told == (tmp_path / "told").read_text()


def test_the_command_waits_for_few_imports(tmp_path):
    command = [sys.executable, "-X", "importtime", "-m", "wattribute", "run", "--quiet", "-o", tmp_path / "x.watt"]
    command += ["--", sys.executable, "-I", "-S", "-c", "import sys; print('NOW', file=sys.stderr)"]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stderr
    before = {line.rpartition("|")[2].strip() for line in told.partition("NOW")[0].splitlines()}
    assert "wattribute.recorders.command" in before
    assert not before & {"rich", "rich_argparse", "numpy", "polars", "pyarrow", "importlib.metadata", "subprocess"}
