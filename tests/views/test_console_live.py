"""The live table: drawn at the foot of a terminal, given back afterwards."""

import io
import os
import pty
import re
import select
import sys
import time

from wattribute.views.console_live import LiveTable


def status(energy_j, at_s, **more):
    return {"live": [{"device": "GPU [red]0", "energy_j": energy_j, "at": int(at_s * 1e9), "estimated": False, **more}]}


def drawn(stream):
    return re.sub(r"\x1b(\[[0-9;]*[A-Za-z]|[78])", "", stream.getvalue())


def test_power_comes_from_the_energy_between_two_updates():
    stream = io.StringIO()
    with LiveTable(stream, lambda: os.terminal_size((80, 24)), clock=lambda: 0.0) as table:
        table(status(0.0, 1.0))
        table(status(300.0, 2.0))
        assert "300 W" in drawn(stream)
        assert "GPU [red]0" in drawn(stream)
        assert "\x1b[1;22r" in stream.getvalue()  # two of 24 lines are kept
    assert stream.getvalue().rindex("\x1b[r") > stream.getvalue().rindex("300 W")  # and given back


def test_a_small_terminal_is_left_alone():
    stream = io.StringIO()
    with LiveTable(stream, lambda: os.terminal_size((80, 6))) as table:
        table(status(1.0, 1.0))
    assert stream.getvalue() == ""


def test_many_devices_are_cut_and_said():
    stream = io.StringIO()
    many = {"live": [{"device": f"GPU {i}", "power_w": 5.0, "at": 0} for i in range(12)]}
    with LiveTable(stream, lambda: os.terminal_size((80, 40))) as table:
        table(many)
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
    seen, deadline = b"", time.monotonic() + 30
    while time.monotonic() < deadline:
        if not select.select([terminal], [], [], 1)[0]:
            continue
        try:
            seen += os.read(terminal, 4096)
        except OSError:
            break
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 3
    os.close(terminal)
    for words in (b"line 1", b"line 3", b"power", b"\x1b[1;21r", b"\x1b[r", b"World average"):
        assert words in seen
