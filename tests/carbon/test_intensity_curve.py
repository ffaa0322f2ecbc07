"""Profiles: steps, gaps and tables."""

from datetime import datetime, timezone

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wattribute.carbon.intensity_curve import Profile, Step, constant, from_table, parse_time
from wattribute.errors import FormatError, NotFoundError, OptionError

T0 = 1_725_458_400 * 10**9  # 2024-09-04T14:00Z


@pytest.mark.parametrize(
    "value",
    ["2024-09-04T14:00Z", "2024-09-04T14:00:00.000Z", "2024-09-04 14:00", "2024-09-04T16:00+02:00", "1725458400",
     1_725_458_400, 1_725_458_400_000, 1_725_458_400_000_000, T0, 1_725_458_400.0, "1725458400.0",
     datetime(2024, 9, 4, 14), datetime(2024, 9, 4, 14, tzinfo=timezone.utc)],
)  # fmt: skip
def test_times_in_every_notation(value):
    assert parse_time(value) == T0


@pytest.mark.parametrize("value", ["", "yesterday", "2024-13-01", None])
def test_not_a_time(value):
    with pytest.raises((ValueError, TypeError)):
        parse_time(value)


@given(st.lists(st.tuples(st.integers(0, 100), st.integers(1, 30)), max_size=8), st.integers(0, 90), st.integers(1, 40))
def test_filling_leaves_no_gap_and_no_overlap(pieces, start, length):
    profile = Profile.of(Step(low, low + size, 1.0, "known") for low, size in pieces)
    whole = profile.filled(start, start + length, 2.0, "filler", fallback=True)
    assert whole.steps[0].start_ns == start
    assert whole.steps[-1].end_ns == start + length
    for before, after in zip(whole.steps, whole.steps[1:], strict=False):
        assert before.end_ns == after.start_ns
    covered = {t for low, size in pieces for t in range(low, low + size)}
    for step in whole.steps:
        for t in range(step.start_ns, step.end_ns):
            assert step.fallback == (t not in covered)
    assert profile.covers(start, start + length) == all(not step.fallback for step in whole.steps)


def test_a_table_without_ends(tmp_path):
    path = tmp_path / "my grid.csv"
    path.write_text("Time,Intensity\n2024-09-04T14:30Z,200\n2024-09-04T14:00Z,100\n")
    steps = from_table(path).steps
    half = 1800 * 10**9
    assert [(s.start_ns, s.end_ns, s.g_per_kwh) for s in steps] == [
        (T0, T0 + half, 100),
        (T0 + half, T0 + 2 * half, 200),
    ]


def test_a_parquet_table_of_several_zones(tmp_path):
    path = tmp_path / "grid.parquet"
    times = [datetime(2024, 9, 4, 14), datetime(2024, 9, 4, 14), datetime(2024, 9, 4, 15)]
    pl.DataFrame({"start": times, "zone": ["DE", "FR", "DE"], "g_per_kwh": [300.0, 50.0, 310.0]}).write_parquet(path)
    assert [s.g_per_kwh for s in from_table(path, {"de"}).steps] == [300.0, 310.0]
    assert [s.g_per_kwh for s in from_table(path, {"France", "FR"}).steps] == [50.0]
    with pytest.raises(FormatError, match="no intensity for zone IT"):
        from_table(path, {"IT"})


@pytest.mark.parametrize(
    ("text", "message"),
    [("a,b\n1,2\n", "needs a column 'start'"), ("time,intensity\nnever,3\n", "row 1"), ("time,intensity\n", "no i"),
     ("time,intensity\n2024-09-04,-3\n", "impossible"), ("time,intensity\n2024-09-04,nan\n", "impossible"),
     ("time,intensity\n2024-09-04,\n", "row 1"), ("", "table")],
)  # fmt: skip
def test_a_table_that_is_none(tmp_path, text, message):
    path = tmp_path / "grid.csv"
    path.write_text(text)
    with pytest.raises(FormatError, match=message):
        from_table(path)


def test_a_missing_table_and_a_mislabelled_one(tmp_path):
    with pytest.raises(NotFoundError):
        from_table(tmp_path / "none.csv")
    (tmp_path / "x.parquet").write_bytes(b"not parquet")
    with pytest.raises(FormatError, match="cannot be read"):
        from_table(tmp_path / "x.parquet")


@pytest.mark.parametrize("figure", [-1, float("nan"), float("inf"), 10_001])
def test_what_cannot_be_an_intensity(figure):
    with pytest.raises(OptionError, match="is impossible"):
        constant(figure)
