"""Regions in step with a square wave of power, against the simulator's own integral: in simulated and in real time."""

import json
import subprocess
import sys
from dataclasses import replace

import pytest

from tests.meters.fakes import FakePowercap, Wave
from wattribute.model import Frames, SpanTable
from wattribute.testing.recordings import spans
from wattribute.testing.sampling import SECOND, Script, SimulatedMeter, Time, sample
from wattribute.views.regions import used

WAVE = Wave(250, 50, period_s=0.2, duty=0.5)
PROGRAM = """
import json, sys, time
from wattribute import record, region
from wattribute.views.regions import used

start_ns, half_ns = int(sys.argv[1]), 100_000_000

def until(ns):
    while (left := ns - time.monotonic_ns()) > 0:
        time.sleep(max(0, left - 2_000_000) / 1e9)  # the last two milliseconds are watched: sleep is late

with record(meters=[sys.argv[2]], interval_s=0.001) as recorder:
    at = -(-(time.monotonic_ns() - start_ns) // (2 * half_ns)) * 2 * half_ns + start_ns + 2 * half_ns
    for i in range(20):
        for name in ("high", "low"):
            until(at)
            with region(name):
                at += half_ns
                until(at)

recording = recorder.recording
spans = recording.spans.spans(0)
offset = recording.clock.offset_ticks
print(json.dumps({
    "used": {row.name: [row.energy_j, row.low_j, row.high_j, row.calls] for row in used(recording)},
    "spans": [[recording.frames.name[f], int(s) + offset, int(e) + offset]
              for f, s, e in zip(spans.frame, spans.start, spans.end)],
    "sampler_cpu_s": recording.metadata["run"]["sampler_cpu_s"],
}))
"""


class ShiftedMeter(SimulatedMeter):
    """A counter that is refreshed every millisecond, ``phase_ns`` after the whole one."""

    phase_ns = 0

    def read(self):
        self.time.now_ns += self.read_ns
        seen_ns = (self.time.now_ns - self.phase_ns) // 1_000_000 * 1_000_000 + self.phase_ns
        return [(self.time.now_ns, round(self.waves[0].energy_j(seen_ns / SECOND) * 1e6))]


@pytest.mark.parametrize("phase_ns", range(0, 1_000_000, 130_000))
@pytest.mark.parametrize("late_ns", [20_000, 90_000])
def test_readings_every_millisecond_of_a_counter_that_moves_every_millisecond(tmp_path, phase_ns, late_ns):
    """Whatever the phase of the counter's updates, and however late the sampler wakes."""
    time = Time(1000 * SECOND)
    meter = ShiftedMeter(time, [WAVE], 0.001, device_kind="cpu", known=0.001)
    meter.phase_ns = phase_ns
    script = Script(time, 4.0, late_ns=late_ns)
    recording = sample(tmp_path, [meter], script, interval_s=0.001)
    begin = 1001 * SECOND  # the wave is high in the first tenth of every fifth of a second
    offset = recording.clock.offset_ticks - begin
    tenths = [(i * SECOND // 10 - offset, (i + 1) * SECOND // 10 - offset, i % 2, -1) for i in range(20)]
    recording = replace(
        recording,
        frames=Frames.of([("high", "user"), ("low", "user")]),
        spans=SpanTable({0: spans(tenths)}),
    )
    rows = {row.name: row for row in used(recording)}
    assert rows["high"].energy_j == pytest.approx(250, rel=0.01)  # ten tenths of a second
    assert rows["low"].energy_j == pytest.approx(50, rel=0.02)
    assert rows["low"].low_j <= 50 <= rows["low"].high_j


@pytest.mark.realtime
def test_regions_of_a_tenth_of_a_second_alternating_between_250_and_50_w(tmp_path):
    with FakePowercap(tmp_path / "sys", {"intel-rapl:0": ("package-0", 0)}, [WAVE], period_s=0.001) as package:
        command = [sys.executable, "-c", PROGRAM, str(package.start_ns), f"rapl:{tmp_path / 'sys'}"]
        done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    truth = {"high": 0.0, "low": 0.0}
    for frame, begin, end in found["spans"]:
        truth[frame] += package.energy_j(0, begin, end)
    assert truth["high"] > 2.5 * truth["low"]  # 5 times, had the program kept step to the microsecond
    for name, true_j in truth.items():
        energy_j, low_j, high_j, calls = found["used"][name]
        assert calls == 20
        assert energy_j == pytest.approx(true_j, rel=0.02)
        assert low_j <= true_j <= high_j
    assert 0 < found["sampler_cpu_s"] < 5  # what reading every millisecond costs is told
