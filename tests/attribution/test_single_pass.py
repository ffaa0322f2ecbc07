"""Busy intervals that are guessed change nothing but the number of passes."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import wattribute
from wattribute.attribution import join
from wattribute.attribution.single_pass import _guessed
from wattribute.engines import work
from wattribute.model import Question
from wattribute.readers.otf2.source import OTF2Spans
from wattribute.readers.otf2.writer import Writer

OFFSET = 10**17
WHOLE = [(0, "enter", 0), (10, "enter", 1), (400, "leave", 1), (900, "leave", 0)]
GAPS = [(5, "enter", 1), (300, "leave", 1), (310, "enter", 1), (310, "leave", 1), (500, "enter", 2), (800, "leave", 2)]
TOUCHING = [(5, "enter", 1), (300, "leave", 1), (300, "enter", 2), (800, "leave", 2)]
UNCLOSED = [(5, "enter", 0), (300, "enter", 1), (800, "leave", 1)]
OTHERS_AROUND = [(0, "enter", 3), (5, "enter", 1), (300, "leave", 1), (800, "leave", 3)]
EMPTY: list[Any] = []


GPU = ("A2rocm_smi:::energy_count:device=0", "uJ")


def archive(folder: Path, *hosts: list[list[Any]], sensors: Sequence[tuple[str, str]] = (GPU,)) -> Path:
    """Ranks on hosts whose device is read every 100 ticks."""
    with Writer(folder, offset_ticks=OFFSET) as trace:
        for name in ("main", "work", "wait", "hidden"):
            trace.region(name)
        metrics = [trace.metric_class([trace.member(*sensor)]) for sensor in sensors]
        for number, ranks in enumerate(hosts):
            _host(trace, f"host{number}", ranks, metrics[number % len(metrics)])
    return folder / "traces.otf2"


def _host(trace: Writer, name: str, ranks: list[list[Any]], metric: int) -> None:
    node = trace.node(name, "node", domain="shared_memory")
    for rank, calls in enumerate(ranks):
        location = trace.location("Master thread", trace.process(f"MPI Rank {rank}", node))
        location.map_ids("region", {0: 0, 1: 2, 2: 1, 3: 3})
        for time, what, region in calls:
            getattr(location, what)(OFFSET + 7 * rank + time, region)
        location.clock_offset(OFFSET, 3 * rank)
        location.clock_offset(OFFSET + 1000, 3 * rank + 2)
    meter = trace.location("energy", trace.process("meter", node), "metric")
    instance = trace.metric_instance(metric, meter.number, "node", node)
    times = np.arange(OFFSET - 100, OFFSET + 1200, 100)
    meter.readings(times, instance, np.cumsum(np.arange(len(times)) * 1_000_003))


def passes(monkeypatch: pytest.MonkeyPatch, anchor: Path, guessing: bool, **given: Any) -> tuple[Any, list[int]]:
    """The answer, and the locations of which busy intervals were read."""
    asked: list[int] = []
    busy = OTF2Spans.busy

    def noted(self: OTF2Spans, location: int, keep: Any = None) -> Any:
        asked.append(location)
        return busy(self, location, keep)

    with monkeypatch.context() as patch:
        patch.setattr(OTF2Spans, "busy", noted)
        if not guessing:
            patch.setattr(OTF2Spans, "guess_busy", lambda _, locations, __: [None] * len(locations))
        return wattribute.attribute(anchor, threads=1, **given), asked


@pytest.mark.parametrize("by", [("process", "frame"), ("process", "path")])
@pytest.mark.parametrize(
    ("ranks", "asked"),
    [
        ([WHOLE, WHOLE, WHOLE], []),  # as guessed: no pass for busy intervals
        ([WHOLE, GAPS, WHOLE], [1, 2]),  # rank 0 was as guessed; rank 2 was not looked at after rank 1
        ([WHOLE, WHOLE, GAPS], [2]),
        ([TOUCHING, WHOLE], [0, 1]),  # one interval indeed, but not of one span: the guess is given up
        ([UNCLOSED, WHOLE], []),  # closed with the last event, which is when the guess ends too
        ([OTHERS_AROUND, WHOLE], []),
        ([EMPTY, WHOLE], [0]),  # nothing to guess from
    ],
)
def test_a_guess_gives_the_same_bits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ranks: list[Any], asked: list[int], by: tuple[str, ...]
) -> None:
    anchor = archive(tmp_path / "trace", ranks)
    guessed, read = passes(monkeypatch, anchor, True, by=by)
    plain, all_read = passes(monkeypatch, anchor, False, by=by)
    assert read == asked
    assert all_read == list(range(len(ranks)))
    for name in ("rows", "devices"):
        assert getattr(guessed, name).equals(getattr(plain, name), null_equal=True)
    assert guessed.problems == plain.problems
    assert guessed.rows.select(pl.col("self_j").sum()).item() > 0


@pytest.mark.parametrize("given", [{"statistics": True}, {"by": ("frame", "reading")}, {"method": "solve"}])
def test_what_is_more_than_one_fold_is_not_guessed(tmp_path: Path, given: dict[str, Any]) -> None:
    recording = wattribute.read(archive(tmp_path / "trace", [WHOLE, WHOLE]))
    for options, guessed in ((given, set()), ({}, {0, 1})):
        plan = join.plan(recording, Question(**options))
        assert set(_guessed(recording, plan, join.groups(plan)[0], map)) == guessed


@pytest.mark.parametrize("by", ["process,frame", "device,path", "device,frame"])
def test_groups_that_are_solved_together_give_the_same_bits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, by: str
) -> None:
    power, other = ("A2rocm_smi:::power_average:device=0", "uW"), ("acme:::energy", "uJ")
    sensors = (GPU, GPU, power, power, GPU, GPU, other)
    hosts = [[WHOLE], [WHOLE, WHOLE], [WHOLE, EMPTY], [GAPS, WHOLE], [WHOLE], [TOUCHING], [WHOLE, WHOLE, WHOLE]]
    anchor = archive(tmp_path / "trace", *hosts, sensors=sensors)
    together = wattribute.attribute(anchor, threads=1, by=by)
    monkeypatch.setattr(work, "MAX_GROUPS", 1)
    apart = wattribute.attribute(anchor, threads=1, by=by)
    for name in ("rows", "devices"):
        assert getattr(together, name).equals(getattr(apart, name), null_equal=True)
    assert together.devices.height == len(hosts)
    assert together.problems == apart.problems
