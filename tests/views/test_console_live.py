"""The live table: drawn at the foot of a terminal, given back afterwards."""

import contextlib
import io
import os
import pty
import re
import sys

from wattribute.model.status import CarbonStatus, DeviceStatus, Status
from wattribute.views.console_live import LiveTable


def status(*devices):
    carbon = CarbonStatus(1.5, 400.0, "World average")
    return Status(0, 0, 2.0, "here", devices, carbon, power_w=300.0, energy_j=600.0)


GPU = DeviceStatus(
    "GPU [red]0", "gpu", energy_j=600.0, power_w=300.0, power_limit_w=400.0, memory_total_bytes=2.0**35,
    gauges={"utilisation_percent": 97.0, "temperature_c": 61.0, "memory_bytes": 2**32},
)  # fmt: skip


def drawn(stream):
    return re.sub(r"\x1b(\[[0-9;]*[A-Za-z]|[78])", "", stream.getvalue())


def test_the_table_has_what_monitor_shows_and_is_given_back():
    stream = io.StringIO()
    with LiveTable(stream, lambda: os.terminal_size((100, 24))) as table:
        table(status(GPU))
        for words in ("GPU [red]0", "300 W", "400 W", "600 J", "97 %", "61 °C", "4.00 of 32.0 GiB"):
            assert words in drawn(stream)
        assert "\x1b[1;21r" in stream.getvalue()  # three of 24 lines are kept
    assert stream.getvalue().rindex("\x1b[r") > stream.getvalue().rindex("300 W")  # and given back


def test_a_dead_sensor_is_not_shown():
    stream = io.StringIO()
    with LiveTable(stream, lambda: os.terminal_size((100, 24))) as table:
        table(status(GPU, DeviceStatus("psys", "node", note="its counter does not move")))
    assert "psys" not in drawn(stream)


def test_a_small_terminal_is_left_alone():
    stream = io.StringIO()
    with LiveTable(stream, lambda: os.terminal_size((80, 6))) as table:
        table(status(GPU))
    assert stream.getvalue() == ""


def test_many_devices_are_cut_and_said():
    stream = io.StringIO()
    with LiveTable(stream, lambda: os.terminal_size((120, 40))) as table:
        table(status(*[DeviceStatus(f"GPU {i}", "gpu", power_w=5.0) for i in range(12)]))
    assert "and 4 more" in drawn(stream)


def test_a_terminal_sees_the_table_and_the_commands_own_output(tmp_path):
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(tmp_path)
        script = "for i in 1 2 3; do echo line $i; sleep 0.5; done; exit 3"
        os.execv(sys.executable, [sys.executable, "-m", "wattribute", "run", "-o", "x.watt", "--", "sh", "-c", script])
    import fcntl
    import struct
    import termios

    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    seen = b""
    with contextlib.suppress(OSError):  # its other end is closed
        while read := os.read(terminal, 4096):
            seen += read
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 3
    os.close(terminal)
    for words in (b"line 1", b"line 3", b"power", b"\x1b[1;20r", b"\x1b[r", b"World average"):
        assert words in seen
