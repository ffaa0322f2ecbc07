"""The bill of a real command beside a busy neighbour: its own energy stays what it is."""

import subprocess
import sys

import pytest

import wattribute

BURN = "import time\nwhile time.process_time() < 1.0: pass"


def command_j(folder, name):
    """The command's own energy, and that of others; the model is the meter, whose watts follow CPU time."""
    done = wattribute.run([sys.executable, "-c", BURN], folder / f"{name}.watt", meters=["model"])
    found = wattribute.attribute(done.recording, by="frame", scope="process", static="apart")
    assert found.rows["self_j"].sum() + found.devices["idle_j"].sum() == pytest.approx(
        found.devices["measured_j"].sum(), rel=1e-9
    )
    rows = dict(found.rows.select("frame", "self_j").iter_rows())
    own = sum(joules for frame, joules in rows.items() if frame not in ("other processes", "static"))
    assert own == pytest.approx(done.summary.command_j, rel=1e-6)  # run and attribute say the same
    assert rows["other processes"] == pytest.approx(done.summary.others_j, rel=1e-6)
    assert rows["static"] == pytest.approx(done.summary.static_j, rel=1e-6)
    return own, rows["other processes"]


@pytest.mark.realtime
def test_a_neighbour_does_not_change_what_a_command_uses(tmp_path):
    quiet, _ = command_j(tmp_path, "quiet")
    neighbours = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(2)]
    try:
        crowded, others = command_j(tmp_path, "crowded")
    finally:
        for neighbour in neighbours:
            neighbour.kill()
            neighbour.wait()
    assert others > 0
    assert crowded == pytest.approx(quiet, rel=0.10)
