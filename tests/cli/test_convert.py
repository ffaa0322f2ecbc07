"""``wattribute convert``: the archive holds what the trace holds, filters leave out what they say."""

import numpy as np
import pytest

import wattribute

from ..readers.otf2.archives import rich
from .test_info import CALLS, READINGS, info, run


@pytest.fixture(scope="module")
def archive(tmp_path_factory):
    return rich(tmp_path_factory.mktemp("convert") / "rich", CALLS, READINGS)


def test_convert_and_read_again(archive, tmp_path):
    done = run("convert", archive, tmp_path / "out.watt")
    assert done.returncode == 0, done.stderr
    before, after = wattribute.read(archive), wattribute.read(tmp_path / "out.watt")
    assert after.frames.name == before.frames.name
    assert after.clock == before.clock
    assert list(after.spans.locations()) == [row for row in before.spans.locations() if len(before.spans.spans(row))]
    for row in after.spans.locations():
        for column in ("start", "end", "frame", "parent", "depth", "resumed"):
            mine, theirs = getattr(after.spans.spans(row), column), getattr(before.spans.spans(row), column)
            np.testing.assert_array_equal(mine, theirs)
    for mine, theirs in zip(after.signals, before.signals, strict=True):
        assert (mine.name, mine.kind, mine.unit, mine.scale) == (theirs.name, theirs.kind, theirs.unit, theirs.scale)
        np.testing.assert_array_equal(mine.times, theirs.times)
        np.testing.assert_array_equal(mine.values, theirs.values)
    told, asked = info(tmp_path / "out.watt"), info(archive)
    for field in ("events", "events_by_kind", "frames", "hosts", "locations", "signals", "problems"):
        assert told[field] == asked[field], field


@pytest.mark.parametrize(
    ("options", "spans", "signals"),
    [
        ([], CALLS + 5, 4),
        (["--metric", "energy_count"], CALLS + 5, 2),
        (["--metric", "heat"], CALLS + 5, 1),
        (["--metric", "nothing like it"], CALLS + 5, 0),
    ],
)
def test_filters(archive, tmp_path, options, spans, signals):
    done = run("convert", archive, tmp_path / "out.watt", *options)
    assert done.returncode == 0, done.stderr
    recording = wattribute.read(tmp_path / "out.watt")
    assert sum(len(recording.spans.spans(row)) for row in recording.spans.locations()) == spans
    assert len(recording.signals) == signals


def test_metric_kinds_reach_the_archive(archive, tmp_path):
    run("convert", archive, tmp_path / "out.watt", "--metric-kind", "heat=delta:kJ")
    [heat] = [s for s in wattribute.read(tmp_path / "out.watt").signals if s.name == "heat"]
    assert (heat.kind, heat.unit, heat.scale) == ("delta", "J", 1000)


def test_problems_go_to_stderr_and_an_existing_folder_is_kept(archive, tmp_path):
    (tmp_path / "out.watt").mkdir()
    done = run("convert", archive, tmp_path / "out.watt")
    assert done.returncode == 1
    assert "exists already" in done.stderr
    done = run("convert", archive, tmp_path / "other.watt")
    assert "declared without a unit" in done.stderr
    assert done.stdout == ""
