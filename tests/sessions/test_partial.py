"""A run of which one device was not metered to the end: every verb says so, with the same joules and seconds."""

from __future__ import annotations

import io
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from rich.console import Console

import wattribute
from wattribute.carbon import emissions, sci
from wattribute.cli import main
from wattribute.model import Device, Link, Signal, counts
from wattribute.sessions.summary import summarise
from wattribute.testing.recordings import RecordingBuilder
from wattribute.views.console_carbon import emissions_table
from wattribute.views.console_run import run_screen
from wattribute.views.numbers import lower_limit, si
from wattribute.views.report.story import numbers_of

S = 10**9


def meter(kind: str, device: str, until_s: int, watts: int) -> Signal:
    times = np.arange(10 * until_s + 1) * (S // 10)
    if kind == "gauge":
        return Signal("power", "gauge", "W", times, np.full(len(times), 1.0 * watts), host="n", device=device)
    values = times // 10**6 * watts
    return Signal("energy", "counter", "J", times, values, Fraction(1, 1000), "n", device, latency_s=0.1, polled=True)


@pytest.fixture(params=["counter", "gauge"])
def recording(request):
    """A command of 9 s: GPU 0 of 300 W was metered for 6.5 s of it, GPU 1 of 200 W to the end."""
    run = {"start_ticks": S // 2, "end_ticks": 19 * S // 2, "exit_code": 0, "pid": 1}
    made = RecordingBuilder(S, length_ticks=10 * S, epoch_ns=10**18, name="x", run=run).host("n")
    made.frames("work").process("p", 1).thread(f"work {S // 2}..{19 * S // 2}", "command")
    return made.recording(
        devices=(Device("GPU 0", "gpu", "n"), Device("GPU 1", "gpu", "n")),
        signals=(meter(request.param, "GPU 0", 7, 300), meter(request.param, "GPU 1", 10, 200)),
        topology=tuple(Link("n", f"GPU {i}", (0,), "the command uses it") for i in range(2)),
    )


def test_run_carbon_and_report_agree_on_what_was_not_seen(recording):
    joules = 6.5 * 300 + 9 * 200
    run = summarise(recording, "FR")
    assert (run.partial, run.energy_j, run.duration_s) == (True, pytest.approx(joules, rel=0.01), 9)
    assert run.high_j is None
    assert run.mean_w == pytest.approx(500, rel=0.01)
    emitted = emissions(recording, zone="FR")
    assert (emitted.energy_j, emitted.duration_s) == (pytest.approx(run.energy_j), 9)
    assert emitted.unseen == ("GPU 0 was metered for 72% of the time",)
    assert (emitted.energy_high_j, emitted.range_g[1]) == (None, None)
    screen = Console(file=io.StringIO(), width=100)
    screen.print(emissions_table(emitted))
    shown = screen.file.getvalue()
    assert f"{lower_limit(run.energy_j, run.low_j)} in 9.00 s" in shown
    assert run.co2e_range_g == (pytest.approx(emitted.range_g[0]), None)
    grams = lower_limit(emitted.co2e_g, emitted.range_g[0], "g")
    assert f"CO2e       {grams}" in shown
    screen.print(run_screen(run))
    assert screen.file.getvalue().count(grams) == 2
    assert "GPU 0 was metered for 72% of the time" in shown
    attribution = wattribute.attribute(recording, by=("device", "frame"))
    highs = {row["device"]: row["measured_hard_high_j"] for row in attribution.devices.to_dicts()}
    assert highs["GPU 0"] is None
    assert highs["GPU 1"] is not None or recording.signals[0].kind == "gauge"
    numbers = dict(numbers_of(attribution, emitted))
    assert si(run.energy_j, "J") in numbers["measured"]
    assert numbers["measured"].startswith("≥") or recording.signals[0].kind == "gauge"  # of no known sensor
    assert (numbers["time"], numbers["mean power"]) == ("9.00 s", si(run.mean_w, "W"))


def test_an_sci_of_a_part_is_a_lower_limit(recording):
    counted = counts.with_counts(recording, {"tokens": 1000})
    found = sci(counted, "tokens", zone="FR")
    assert found.high is None
    assert found.energy_kwh.uncertainty == "a lower limit: GPU 0 was metered for 72% of the time"
    screen = Console(file=io.StringIO(), width=100)
    for factors in (True, False):
        screen.print(emissions_table(found.emissions, found, factors=factors))
    shown = " ".join(screen.file.getvalue().split())
    limit = lower_limit(found.sci, found.low, "g")
    assert f"SCI {limit} CO2e per tokens" in shown
    assert f"per tokens {limit}" in shown


def test_a_device_that_ended_with_all_others_is_as_long_as_its_run(recording):
    """The only device is GPU 0: the run is still 9 s long."""
    alone = wattribute.reading.select(recording, "energy|power")
    alone = replace(alone, signals=recording.signals[:1], devices=recording.devices[:1])
    assert emissions(alone, zone="FR").duration_s == summarise(alone, "FR").duration_s == 9


@pytest.mark.parametrize(
    "words",
    [
        *([verb, ""] for verb in ("attribute", "info", "carbon", "summary", "view", "calibrate")),
        ["merge", "", "", "-o", "out.watt"],
        ["convert", "x.watt", ""],
        ["export", "", "--to", "speedscope"],
        ["export", "x.watt", "--to", "speedscope", "-o", ""],
        ["plot", "power", "x.watt", "-o", ""],
        ["report", "x.watt", "--output="],
        ["compare", "", "--vs", ""],
        ["run", "-o", "", "--", "true"],
    ],
    ids=" ".join,
)
def test_an_empty_path_is_an_error(words, monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", ["wattribute", *words])
    with pytest.raises(SystemExit) as done:
        main()
    assert done.value.code
    assert "an empty path" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
