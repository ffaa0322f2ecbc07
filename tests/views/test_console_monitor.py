"""The screen of ``monitor``: as text at any size, and through a real terminal (tmux)."""

import io
import shlex
import subprocess
import sys
import time

import pytest
from rich.console import Console

from tests.conftest import need
from tests.meters.fakes import FakeNvml, Wave
from wattribute.model.status import CarbonStatus, DeviceStatus, Status
from wattribute.views.console_monitor import last_words, line, monitor_screen, sparkline


def row(device, power_w, energy_j, estimated=False, gauges=(), **more):
    values = {"kind": "gpu", "power_w": power_w, "energy_j": energy_j, "estimated": estimated, **more}
    return DeviceStatus(device, gauges=dict(gauges), **values)


def status(*rows, **more):
    carbon = CarbonStatus(1.5, 400.0, "World average", assumed=True)
    sums = {"power_w": 375.0, "energy_j": 1500.0, "carbon": carbon, "host": "[red]host", "at": 0}
    machine = {"cpu_percent": 33.0, "cpus": 8, "memory_bytes": 2**30, "memory_total_bytes": 2**33}
    return Status(**{"devices": rows, "epoch_ns": 0, "elapsed_s": 4.0, **sums, **machine, **more})


GPU = row(
    "GPU [bold]0", 300.0, 1200.0, gauges={"utilisation_percent": 97.0, "temperature_c": 61.0, "memory_bytes": 2**32},
    memory_total_bytes=float(2**35), power_limit_w=400.0,
)  # fmt: skip
CPU = row("CPU", 75.0, 300.0, estimated=True, kind="cpu", apart="an estimate beside measurements")


def drawn(shown, width, height, history=None):
    console = Console(file=io.StringIO(), width=width, height=height, force_terminal=True, color_system=None)
    history = history or {"": [100.0, 375.0], **{r.device: [r.power_w or 0.0] for r in shown.devices}}
    console.print(monitor_screen(shown, history, console))
    return console.file.getvalue()


@pytest.mark.parametrize(("width", "height"), [(40, 24), (80, 24), (100, 30), (200, 50)])
def test_every_size_shows_power_and_how_it_is_known_and_overflows_nowhere(width, height):
    text = drawn(status(GPU, CPU), width, height)
    lines = text.rstrip("\n").split("\n")
    assert len(lines) <= height
    assert max(map(len, lines)) <= width
    for words in ("300 W", "measured", "75.0 W est", "GPU [bold]0", "375 W measured", "[red]host", "q quits"):
        assert words in text.replace("75.0 W estimated", "75.0 W est.")
    for number in ("97 %", "61 °C"):
        assert number in text


def test_a_small_window_says_that_there_is_more():
    text = drawn(status(*[row(f"GPU {i}", 1.0, 1.0) for i in range(16)]), 100, 14)
    assert len(text.rstrip("\n").split("\n")) <= 14
    assert "more lines" in text


def test_a_dead_counter_and_what_is_not_added_are_told():
    dead = row("package 0", None, None, kind="cpu", note="its counter does not move: dead, not 0 J")
    text = drawn(status(GPU, CPU, dead), 100, 30)
    assert "dead, not 0 J" in text
    assert "not added: CPU (an estimate beside measurements)" in text
    assert " 0 J" not in text.replace("dead, not 0 J", "")


def test_before_the_first_reading_nothing_is_zero():
    text = drawn(status(row("GPU", None, None), power_w=None, energy_j=None), 100, 30)
    assert "waiting for the sensors" in text
    assert " 0 " not in text


def test_a_sparkline_goes_from_nothing_to_the_limit():
    assert sparkline([0, 50, 100], 5) == "   ▄█"
    assert sparkline([50, 50], 2, limit=400.0) == "▁▁"
    assert sparkline([], 3) == "   "
    assert sparkline([1, 2, 3, 4], 2) == "▆█"


def test_lines_for_where_there_is_no_terminal():
    assert "GPU [bold]0 300 W 1.20 kJ measured 97 % 61 °C 4.00 of 32.0 GiB" in line(status(GPU, CPU))
    assert last_words(status(GPU)).startswith("1.50 kJ measured in 4.00 s, mean 375 W; CO2e 1.50 g at 400 g/kWh")
    assert last_words(status(energy_j=None)) == "no sensor gave a reading"


class Terminal:
    """A tmux session of its own."""

    def __init__(self, folder, command, width, height):
        self._tmux = [need("tmux"), "-L", f"wattribute-{folder.name}", "-f", "/dev/null"]
        shell = f"{command}; echo ended $?; stty -a | grep -o '.icanon'; sleep 60"
        self.tell("new-session", "-d", "-s", "x", "-x", str(width), "-y", str(height), shell)

    def tell(self, *words):
        return subprocess.run([*self._tmux, *words], check=True, capture_output=True, text=True).stdout

    def screen(self):
        return self.tell("capture-pane", "-p", "-t", "x")

    def until(self, words):
        while words not in (text := self.screen()):
            assert words.startswith("ended") or "ended " not in text, text
            time.sleep(0.1)
        return text

    def close(self):
        subprocess.run([*self._tmux, "kill-server"], capture_output=True)


@pytest.fixture
def terminal(tmp_path):
    opened = []

    def make(width, height, *arguments):
        fake = FakeNvml(tmp_path, [Wave(300), Wave(120)])
        told = fake.variables()
        words = ["env", *(f"{k}={v}" for k, v in told.items()), "TERM=xterm-256color", "LC_ALL=C.UTF-8"]
        words += [sys.executable, "-m", "wattribute", "monitor", "--interval", "0.2", *arguments]
        opened.append(Terminal(tmp_path, shlex.join(words), width, height))
        return opened[-1]

    yield make
    for each in opened:
        each.close()


def test_a_terminal_is_drawn_resized_and_given_back(terminal):
    window = terminal(100, 30)
    text = window.until("420 W measured")
    assert "GPU 1" in text
    assert "120 W" in text
    assert "█" in text
    window.tell("resize-window", "-t", "x", "-x", "40", "-y", "24")
    text = window.until("GPU 0  300 W measured")
    assert max(map(len, text.split("\n"))) <= 40
    window.tell("resize-window", "-t", "x", "-x", "200", "-y", "50")
    window.until("device")
    window.tell("send-keys", "-t", "x", "x", "q")  # another key does nothing
    text = window.until("ended 0")
    assert "measured in" in text
    assert "device " not in text  # the second screen is gone
    assert "-icanon" not in text  # and the keyboard is as before


def test_ctrl_c_ends_it_in_order(terminal):
    window = terminal(80, 24, "--web")
    assert "q quits · http://127.0.0.1:" in window.until("420 W measured")
    window.tell("send-keys", "-t", "x", "C-c")
    text = window.until("ended 0")
    assert "Traceback" not in text
    assert "-icanon" not in text
