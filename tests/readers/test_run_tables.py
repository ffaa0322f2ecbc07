"""Files in which each row is a run: golden tables, detection, the archive's round trip, hostile variants."""

import numpy as np
import pytest

import wattribute
from tests.readers.tables_of_runs import BEGIN, CODECARBON, ECO2AI, codecarbon_row, eco2ai_row, write
from wattribute.errors import FormatError
from wattribute.reading import read_runs

TWO = [
    codecarbon_row(20, 10.0, 2e-5, ram_kwh=1e-6),
    codecarbon_row(40, 5.0, 1e-5, ram_kwh=5e-7, kg_per_kwh=0.718, country="India"),
]
EPOCHS = [
    eco2ai_row(0, 4.0, 1e-5, 5e-6, run="a"),
    eco2ai_row(10, 3.0, 2e-5, 1e-5, run="b", epoch="epoch: 1"),
    eco2ai_row(13, 3.0, 4e-5, 2e-5, run="b", epoch="epoch: 2"),
]


@pytest.fixture(params=["codecarbon", "eco2ai"])
def sample(request, tmp_path):
    """(path under a name that says nothing, format, joules, runs)."""
    if request.param == "codecarbon":
        return write(tmp_path / "some.data", CODECARBON, TWO), "codecarbon", 3.15e-5 * 3.6e6, 2
    return write(tmp_path / "some.data", ECO2AI, EPOCHS), "eco2ai", 7e-5 * 3.6e6, 2


def test_detected_under_an_unknown_name_with_every_joule(sample):
    path, format, joules, runs = sample
    recording = wattribute.read(path)
    assert recording.metadata["format"] == format
    found = wattribute.attribute(recording, by=("device", "frame"))
    assert found.devices["measured_j"].sum() == pytest.approx(joules, rel=1e-12)
    assert found.rows["self_j"].sum() == pytest.approx(joules, rel=1e-12)  # all of it is somebody's
    assert found.rows["calls"].max() == runs
    assert len(read_runs(path)[0]) == runs


def test_the_archive_gives_it_back_and_again(sample, tmp_path):
    recording = wattribute.read(sample[0])
    wattribute.save(recording, tmp_path / "a.watt")
    once = wattribute.load(tmp_path / "a.watt")
    wattribute.save(once, tmp_path / "b.watt")
    again = wattribute.load(tmp_path / "b.watt")
    for other in (once, again):
        assert other.metadata == recording.metadata
        assert other.frames.rows() == recording.frames.rows()
        for mine, theirs in zip(recording.signals, other.signals, strict=True):
            np.testing.assert_array_equal(mine.times, theirs.times)
            np.testing.assert_array_equal(mine.values, theirs.values)
            assert (mine.name, mine.scale, mine.estimated) == (theirs.name, theirs.scale, theirs.estimated)
        for location in recording.spans.locations():
            np.testing.assert_array_equal(recording.spans.spans(location).start, other.spans.spans(location).start)


def test_a_codecarbon_run_as_it_is(tmp_path):
    """10 s that ended at 12:00:20, 2e-5 kWh = 72 J of CPU and 3.6 J of memory, 2.1e-5 kWh × 29 g/kWh."""
    first, second = read_runs(write(tmp_path / "x.csv", CODECARBON, TWO))[0]
    assert first.clock.epoch_ns == round(BEGIN.timestamp() * 1e9) + 10 * 10**9
    assert first.clock.length_ticks == 10 * 10**9
    joules = {s.device: float(s.values[-1] - s.values[0]) * s.scale for s in first.signals}
    assert joules == {"CPU": pytest.approx(72.0), "memory": pytest.approx(3.6)}
    assert all(s.estimated for s in first.signals)  # the file does not say that the CPU was metered
    totals = first.metadata["totals"]
    assert totals["co2e_g"] == pytest.approx(2.1e-5 * 29)
    assert (totals["place"], totals["g_per_kwh"]) == ("Canada", pytest.approx(29))
    assert second.metadata["totals"]["g_per_kwh"] == pytest.approx(718)
    assert first.metadata["labels"] == {"file": "x", "project": "a [bold]project"}


def test_grams_of_a_run_are_at_the_intensity_of_its_file(tmp_path):
    path = write(tmp_path / "emissions.csv", CODECARBON, TWO)
    of_canada, of_india = (wattribute.emissions(one) for one in read_runs(path)[0])
    assert of_canada.g_per_kwh == pytest.approx(29)
    assert of_india.co2e_g == pytest.approx(1.05e-5 * 718)  # kWh × g/kWh
    assert wattribute.emissions(read_runs(path)[0][1], intensity=100).g_per_kwh == 100


def test_gpus_are_metered(tmp_path):
    row = codecarbon_row(20, 10.0, 1e-5, gpu_kwh=1e-4)
    recording = wattribute.read(write(tmp_path / "x.csv", CODECARBON, [row]))
    assert {s.device: s.estimated for s in recording.signals} == {"CPU": True, "GPUs": False}


def test_old_versions_know_only_the_sum(tmp_path):
    columns = ["timestamp", "project_name", "duration", "emissions", "energy_consumed", "country_name"]
    row = {"timestamp": "2021-01-01T00:00:10", "duration": "5", "emissions": "1e-6", "energy_consumed": "1e-5"}
    recording = wattribute.read(write(tmp_path / "x.csv", columns, [row]))
    assert [d.name for d in recording.devices] == ["node"]
    assert wattribute.attribute(recording).devices["measured_j"].sum() == pytest.approx(36)


def test_epochs_of_a_run_are_added_up(tmp_path):
    _, epochs = read_runs(write(tmp_path / "x.csv", ECO2AI, EPOCHS))[0]
    totals = epochs.metadata["totals"]
    assert (totals["duration_s"], totals["energy_j"], totals["co2e_g"]) == (
        6.0,
        pytest.approx(216),
        pytest.approx(0.03),
    )
    assert epochs.metadata["epoch"] == "2 epochs"


def test_runs_that_overlap_stand_in_lanes_of_their_own(tmp_path):
    rows = [codecarbon_row(20, 10.0, 2e-5), codecarbon_row(22, 10.0, 1e-5), codecarbon_row(40, 1.0, 1e-5)]
    recording = wattribute.read(write(tmp_path / "x.csv", CODECARBON, rows))
    assert [len(recording.spans.spans(lane)) for lane in recording.spans.locations()] == [2, 1]
    assert (recording.signals[0].values >= 0).all()
    found = wattribute.attribute(recording)
    assert found.rows["self_j"].sum() == pytest.approx(4e-5 * 3.6e6, rel=1e-9)


@pytest.mark.parametrize(
    ("column", "value"),
    [("duration", "nan"), ("duration", "-1"), ("energy_consumed", "inf"), ("energy_consumed", ""),
     ("timestamp", "yesterday"), ("timestamp", ""), ("cpu_energy", "1e-5x"), ("emissions", "-0.1")],
)  # fmt: skip
def test_a_row_that_cannot_be_is_left_out_and_told(tmp_path, column, value):
    bad = codecarbon_row(40, 5.0, 1e-5) | {column: value}
    path = write(tmp_path / "x.csv", CODECARBON, [TWO[0], bad])
    recordings, left_out = read_runs(path)
    assert len(recordings) == 1
    assert f"line 3 ({column} is" in left_out[0]
    assert [p.kind for p in wattribute.read(path).problems] == ["left-out"]


def test_files_that_hold_nothing_are_told(tmp_path):
    with pytest.raises(FormatError, match="holds no run"):
        wattribute.read(write(tmp_path / "x.csv", CODECARBON, []))
    with pytest.raises(FormatError, match="duration is 'x'"):
        wattribute.read(write(tmp_path / "y.csv", CODECARBON, [TWO[0] | {"duration": "x"}]))


def test_cut_and_wrongly_encoded_files(tmp_path):
    path = write(tmp_path / "x.csv", CODECARBON, [TWO[0] | {"country_name": "Österreich"}, TWO[1]])
    whole = path.read_bytes()
    path.write_bytes(whole[:-170])  # in the middle of the second row: its energy is gone
    assert len(read_runs(path)[0]) == 1
    path.write_bytes(whole.decode().encode("latin-1"))
    recording = wattribute.read(path)
    assert any("not UTF-8" in p.message for p in recording.problems)
    path.write_bytes(whole.decode().encode("utf-8-sig"))  # as Excel saves it
    assert wattribute.read(path).problems == ()


def test_an_ensemble_has_a_run_per_row_with_its_labels(tmp_path):
    path = write(tmp_path / "train.csv", CODECARBON, TWO)
    ensemble = wattribute.Ensemble.read(path)
    assert [run.name for run in ensemble.runs] == ["train #1", "train #2"]
    rows = ensemble.attribute("run").rows
    assert set(rows["file"]) == {"train"}
    assert rows["self_j"].sum() == pytest.approx(3.15e-5 * 3.6e6)
