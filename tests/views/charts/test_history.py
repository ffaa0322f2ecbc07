"""Charts of an experiment: every run once in every panel, histograms that add up, hostile labels, what is left out."""

import json

import pytest

from tests.readers.tables_of_runs import CODECARBON, codecarbon_row, write
from tests.views.charts.test_plot import texts
from wattribute.errors import NoDataError, OptionError
from wattribute.sessions.experiment import Experiment, RunRow, run_table
from wattribute.sessions.experiment import experiment as experiment_of
from wattribute.views import charts, plot, save

PANELS = ["time", "energy", "emissions", "emission rate"]
HOSTILE = "</script><b> ${x} 'q' \" 日本"


def run(number, energy_j=100.0, label="a", left_out="", **more):
    known = {"duration_s": 2.0, "co2e_g": 0.01, "g_per_kwh": 360.0, "place": "X", "estimated": False}
    labels = {} if label is None else {"mode": label}
    row = {"start_ns": (1_700_000_000 + number) * 10**9, "energy_j": energy_j, "labels": labels} | known | more
    return RunRow(name=f"run {number}", path="", left_out=left_out, **row)


def experiment(count=12, labels=("a", "b")):
    runs = (
        run(i, 100.0 + i, labels[i % len(labels)], duration_s=2 + 0.01 * i, co2e_g=0.01 + 1e-4 * i**2)
        for i in range(count)
    )
    return Experiment(tuple(runs))


def sets(chart, column):
    return [rows for rows in chart.to_dict()["datasets"].values() if rows and column in rows[0]]


@pytest.mark.parametrize("kind", [chart.name for chart in charts.every() if chart.needs == "experiment"])
def test_either_can_be_a_pdf(kind):
    assert save.pdf(plot.draw(kind, [experiment()]).to_json()).startswith(b"%PDF")


def test_history_has_every_run_once_in_every_panel():
    found = experiment()
    chart = plot.draw("history", [found])
    points = sets(chart, "exact")
    assert [len(rows) for rows in points] == [12] * 4
    joules = next(rows for rows in points if rows[0]["exact"].endswith(" J"))
    assert sum(row["y"] for row in joules) == pytest.approx(sum(r.energy_j for r in found.runs))
    assert [row["x"] for row in joules] == sorted(row["x"] for row in joules if row["group"] == "mode=a") + sorted(
        row["x"] for row in joules if row["group"] == "mode=b"
    )
    means = next(rows for rows in sets(chart, "mean_of") if rows[0]["y"] > 50)
    assert [row["y"] for row in means] == [105.0, 106.0]  # of 100, 102 … 110 and of 101 … 111
    assert [title for title in texts(chart) if title in PANELS] == PANELS


def test_energy_and_power_of_devices_are_panels_and_a_folder_is_its_runs(tmp_path):
    """Two runs of codecarbon: the CPU's 72 and 36 J; its power as the file says it, the memory's as the mean."""
    rows = [
        codecarbon_row(20, 10.0, 2e-5, ram_kwh=1e-6, cpu_power="7.5"),
        codecarbon_row(40, 5.0, 1e-5, ram_kwh=5e-7, cpu_power="7.1"),
    ]
    write(tmp_path / "emissions.csv", CODECARBON, rows)
    found = experiment_of([tmp_path])
    assert [run.device_j["CPU"] for run in found.runs] == pytest.approx([72.0, 36.0])
    assert [run.device_w["CPU"] for run in found.runs] == [7.5, 7.1]
    assert [run.device_w["memory"] for run in found.runs] == pytest.approx([0.36, 0.36])
    table = run_table(found)
    assert table["energy_j_memory"].to_list() == pytest.approx([3.6, 1.8])
    devices = [f"{what} of {device}" for what in ("energy", "power") for device in ("CPU", "memory")]
    for kind in ("history", "histogram"):
        said = " ".join(texts(plot.draw(kind, [found])))
        assert all(title in said for title in devices), kind
    points = next(rows for rows in sets(plot.draw("runs", [tmp_path]), "energy_j") if "run" in rows[0])
    assert sorted(row["energy_j"] for row in points) == pytest.approx([37.8, 75.6])


def test_histograms_count_every_run():
    chart = plot.draw("histogram", [experiment(30)])
    counts = sets(chart, "runs")
    assert len(counts) == 8  # four panels for each of two labels
    assert [sum(row["runs"] for row in rows) for rows in counts] == [15] * 8
    said = texts(chart)
    assert "mode=a, 15 runs" in said
    assert "mean 114 J, median 114 J" in said


def test_what_is_left_out_is_a_cross_that_stretches_nothing():
    runs = (*experiment().runs, run(50, 1e9, left_out="its exit code is 3"))
    chart = plot.draw("history", [Experiment(runs, ("run 50 is left out: its exit code is 3",))])
    assert "logarithmic" not in " ".join(texts(chart))
    assert [rows[0]["left_out"] for rows in sets(chart, "left_out")] == ["its exit code is 3"] * 4
    assert any("1 left out" in text for text in texts(chart))
    assert any("its exit code is 3" in text for text in texts(chart))
    assert all(
        sum(row["runs"] for row in rows) == 6 for rows in sets(plot.draw("histogram", [Experiment(runs)]), "runs")
    )


def test_values_far_apart_are_drawn_on_a_logarithmic_scale():
    runs = tuple(run(i, energy_j) for i, energy_j in enumerate((0.01, 1.0, 5000.0)))
    said = texts(plot.draw("history", [Experiment(runs)]))
    assert "energy, logarithmic" in said
    assert "time" in said


def test_runs_without_a_clock_are_numbered():
    runs = tuple(run(i, start_ns=None) for i in range(3))
    rows = sets(plot.draw("history", [Experiment(runs)]), "exact")[0]
    assert [row["x"] for row in rows] == [1, 2, 3]


def test_no_grams_no_panels_of_them_and_one_run_is_enough():
    chart = plot.draw("history", [Experiment((run(1, co2e_g=None, g_per_kwh=None, label=None),))])
    assert len(sets(chart, "exact")) == 2
    assert save.svg(chart.to_json())
    assert save.svg(plot.draw("histogram", [Experiment((run(1),))]).to_json())


def test_many_labels_become_one_and_hostile_ones_stay_text():
    many = plot.draw("history", [experiment(24, [f"{i}" for i in range(12)])], looks={"top": 3})
    assert any("other (9 labels)" in text for text in texts(many))
    assert sum(len(rows) for rows in sets(many, "exact")) == 4 * 24
    hostile = plot.draw("histogram", [experiment(6, [HOSTILE, "b"])], looks={"theme": "dark"})
    assert "<script" not in save.svg(hostile.to_json())
    assert HOSTILE in json.dumps(hostile.to_dict(), ensure_ascii=False).replace('\\"', '"')


def test_wrong_wishes_are_told():
    with pytest.raises(OptionError, match="did you mean 'mode'"):
        plot.draw("history", [experiment()], looks={"by": ["mdoe"]})
    with pytest.raises(NoDataError, match="no run can be drawn"):
        plot.draw("histogram", [Experiment((run(1, left_out="x"),), ("run 1 is left out: x",))])
    with pytest.raises(OptionError, match="has no value"):
        plot.draw("history", [experiment()], looks={"value": "power"})
