"""Every kind of chart: what it shows adds up, its structure is as promised, and nothing users write breaks it."""

import json
from xml.etree import ElementTree

import numpy as np
import pytest

import wattribute
from tests.views.stories import HOSTILE, ranks, streams
from wattribute import samples
from wattribute.errors import NoDataError, OptionError
from wattribute.testing.recordings import RecordingBuilder
from wattribute.views import charts, plot, save
from wattribute.views.charts import curves, tracks
from wattribute.views.charts.canvas import pixels
from wattribute.views.numbers import si

SHOWN = {  # kind → the column whose sum is energy, and what it adds up to
    "power": ("energy_j", "measured"),
    "timeline": ("self_j", "attributed"),
    "flame": ("self_j", "measured"),
    "icicle": ("self_j", "measured"),
    "sunburst": ("self_j", "measured"),
    "distribution": ("energy_j", "attributed"),
    "books": ("energy_j", "measured"),
    "heatmap": ("cell_j", "attributed"),
}


def data_sets(chart):
    """The rows of every data set, those that have a name in the chart included."""
    waiting = [chart.to_dict()]
    sets = list(waiting[0].get("datasets", {}).values())
    while waiting:
        part = waiting.pop()
        if isinstance(part, dict):
            sets += [list(part["values"])] if "name" in part and "values" in part else []
            waiting += [value for key, value in part.items() if key not in ("values", "datasets")]
        elif isinstance(part, list | tuple):
            waiting += part
    return sets


def every_row(chart):
    return [row for rows in data_sets(chart) for row in rows]


def rows_with(chart, column):
    """The rows of the largest data set that has this column."""
    found = [rows for rows in data_sets(chart) if rows and column in rows[0]]
    return max(found, key=len) if found else []


def shown_j(chart, kind):
    """The energy in the rows of a chart: a data set per device or frame in some kinds, one in the others."""
    column, _ = SHOWN[kind]
    if kind == "timeline":  # a view per node; wide bars are once more among those with words
        bars = {(row["lane"], row["start"], row["end"], row["y"]): row for row in every_row(chart) if column in row}
        return sum(row[column] for row in bars.values())
    if kind not in ("power", "distribution"):
        return sum(row[column] for row in rows_with(chart, column))
    sets = [rows for rows in data_sets(chart) if rows and column in rows[0]]
    return sum(row[column] for rows in sets for row in rows)


def texts(chart):
    return [e.text or "" for e in ElementTree.fromstring(save.svg(chart.to_json())).iter() if e.tag.endswith("text")]


def expected_j(recording, what, **options):
    devices = wattribute.attribute(recording, **options).devices
    return devices.get_column(f"{what}_j").sum()


@pytest.mark.parametrize("kind", SHOWN)
@pytest.mark.parametrize("recording", [ranks(hosts=2), streams(["a", "b", "c"], calls=40)], ids=["ranks", "streams"])
def test_what_a_chart_shows_adds_up(kind, recording):
    _, what = SHOWN[kind]
    chart = plot.draw(kind, [recording])
    assert shown_j(chart, kind) == pytest.approx(expected_j(recording, what), rel=1e-9)


@pytest.mark.parametrize(
    "chosen",
    [{"host": "n01"}, {"process": "Rank 0"}, {"frame": "step|write"}, {"host": "n00", "exclude_frame": "main"}],
)
@pytest.mark.parametrize("limit", [6000, 1], ids=["spans", "bins"])
def test_a_timeline_shows_the_rows_that_were_chosen(chosen, limit, monkeypatch):
    monkeypatch.setattr("wattribute.views.charts.timeline._MARKS", limit)
    recording = ranks(count=2, hosts=2, depth=4)
    rows = wattribute.attribute(recording, by="frame", **chosen)
    assert rows.left_out > 0
    chart = plot.draw("timeline", [recording], **chosen)
    assert shown_j(chart, "timeline") == pytest.approx(rows.rows["self_j"].sum(), rel=1e-9)
    assert "(not selected)" in " ".join(texts(chart))


def test_words_of_arrows_do_not_cover_one_another():
    made = RecordingBuilder(1000, length_ticks=1000)
    rows = [(0, 1000, "main")]
    for i in range(24):
        rows += [(10 + 40 * i, 45 + 40 * i, f"caller_{i}"), (11 + 40 * i, 40 + 40 * i, "leaf")]
    recording = made.process("p").thread(rows, "t").counter("package", np.arange(1001), np.arange(1001)).recording()
    heads = [row for row in every_row(plot.draw("callgraph", [recording])) if "side" in row]
    places = {(head["x"], head["y"], head["words"], head["side"]) for head in heads if head["words"]}
    boxes = []
    for x, y, words, side in places:
        boxes.append((*sorted((x, x + (pixels(words, 8) + 7) * (1 if side == "left" else -1))), y))
    assert boxes
    for i, (left, right, y) in enumerate(boxes):
        assert not any(left < b and a < right and abs(y - other) < 10 for a, b, other in boxes[:i])


def test_a_timeline_has_a_view_per_node_and_power_the_devices_of_the_nodes_chosen():
    recording = ranks(count=2, hosts=2, depth=2)
    said = texts(plot.draw("timeline", [recording]))
    assert {"n00", "n01"} <= set(said)
    one = " ".join(texts(plot.draw("power", [recording], host="n01")))
    assert "n01" in one
    assert "n00" not in one


def test_colours_from_little_to_much():
    recording = ranks(depth=2)
    grounds = {row.get("ground") for row in every_row(plot.draw("heatmap", [recording], looks={"theme": "light:reds"}))}
    assert "#67000D" in grounds  # the last of reds: the cell with most
    own = plot.draw("heatmap", [recording], looks={"theme": "dark:#000000,ff0000"})
    assert "#FF0000" in {row.get("ground") for row in every_row(own)}
    for wrong in ("redz", "#12345", "#FFFFFF"):
        with pytest.raises(OptionError, match="unknown colours"):
            plot.draw("heatmap", [recording], looks={"theme": f"light:{wrong}"})


def test_the_graph_of_calls_counts_every_joule_once():
    recording = ranks(depth=4)
    rows = rows_with(plot.draw("callgraph", [recording]), "self_j")
    assert sum(row["self_j"] for row in rows) == pytest.approx(expected_j(recording, "attributed"), rel=1e-9)
    assert {"main", "solve", "level_3", "MPI_Barrier"} <= {row["name"] for row in rows}
    main = next(row for row in rows if row["name"] == "main")
    assert main["total_j"] == pytest.approx(expected_j(recording, "attributed"), rel=1e-9)


@pytest.mark.parametrize("graphviz", [True, False])
def test_words_at_lines_stand_on_nothing(monkeypatch, graphviz):
    """Twelve frames that call one: their lines end close to each other."""
    from wattribute.views.charts import layout

    if not graphviz:
        monkeypatch.setattr(layout, "_of_graphviz", lambda graph: None)
    made = RecordingBuilder(1000, length_ticks=24_000).host("h").process("p")
    calls = ", ".join(f"caller_{i} {2 * i}s..{2 * i + 2}s, hub {2 * i}.5s..{2 * i + 1}.5s" for i in range(12))
    made.thread(f"main 0s..24s, {calls}").counter("package 0", [0, 2400], every=24_000)
    data = plot.draw("callgraph", [made.recording()]).to_dict()["datasets"].values()
    boxes = next(rows for rows in data if rows and "shares" in rows[0])
    words = [row for rows in data for row in rows if row.get("words")]
    assert words
    places = []
    for row in {(row["x"], row["y"]): row for row in words}.values():
        left = row["x"] + 7 if row["side"] == "left" else row["x"] - 7 - 4.8 * len(row["words"])
        place = (left, row["y"] - 13, left + 4.8 * len(row["words"]), row["y"] - 2)
        for box in [(box["x"], box["y"], box["x2"], box["y2"]) for box in boxes] + places:
            assert place[0] >= box[2] or box[0] >= place[2] or place[1] >= box[3] or box[1] >= place[3]
        places.append(place)


def test_the_graph_as_dot_is_well_formed_whatever_the_names(tmp_path):
    from tests.conftest import need

    target = plot.write("callgraph", [streams(list(HOSTILE))], tmp_path / "graph.dot")
    text = target.read_text()
    assert text.startswith("digraph wattribute {")
    assert "\\\\slash" in text
    import subprocess

    done = subprocess.run([need("dot"), "-Tsvg", str(target)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "alert(1)" in done.stdout
    assert "<script>" not in done.stdout


def test_flame_puts_the_root_below_and_icicle_on_top():
    recording = ranks(depth=3)
    flame, icicle = (plot.draw(kind, [recording]).to_dict() for kind in ("flame", "icicle"))
    assert '"reverse": true' not in json.dumps(flame["vconcat"][1])
    assert '"reverse": true' in json.dumps(icicle["vconcat"][1])
    rows = rows_with(plot.draw("flame", [recording]), "depth2")
    assert {row["frame"] for row in rows if row["depth"] == 0} == {"main"}
    assert max(row["depth2"] for row in rows) == 5  # main, solve, three levels


def test_deep_stacks_are_cut_and_said(recwarn):
    chart = plot.draw("flame", [ranks(depth=70)])
    assert max(row["depth2"] for row in rows_with(chart, "depth2")) == 48
    assert any("Levels below 48 of 72 are not drawn" in text for text in texts(chart))


def test_node_has_a_track_per_device_and_a_lane_per_rank():
    chart = plot.draw("node", [ranks(count=3, hosts=2, depth=3)])
    sets = data_sets(chart)
    tracks = {rows[0]["device"] for rows in sets if rows and "mean" in rows[0] and "low" in rows[0]}
    assert tracks == {"n00 package 0", "n01 package 0"}
    assert {row["lane"] for row in every_row(chart) if "lane" in row} == {
        f"MPI Rank {i} · Master thread" for i in range(3)
    }


def test_heatmap_has_frames_by_energy_and_ranks_in_order():
    recording = ranks(count=12, depth=3)
    chart = plot.draw("heatmap", [recording])
    rows = rows_with(chart, "cell_j")
    assert len(rows) == 12 * 8
    assert [row["process"] for row in rows[:12]] == [f"MPI Rank {i}" for i in range(12)]
    by_row = [sum(row["cell_j"] for row in rows if row["row"] == i) for i in range(8)]
    assert by_row == sorted(by_row, reverse=True)


def test_heatmap_of_power_divides_by_covered_time():
    found = wattribute.attribute(ranks(depth=2), by=("process", "frame"))
    rows = rows_with(plot.heatmap(found, value="power"), "cell_j")
    wanted = {(r["process"], r["frame"]): r["power_w"] for r in found.rows.to_dicts()}
    for row in rows:
        assert row["value"] == pytest.approx(wanted[row["process"], row["frame"]] or 0.0)


def test_margins_and_title_of_a_heatmap_of_power_are_power():
    found = wattribute.attribute(ranks(depth=2), by=("process", "frame"))
    chart = plot.heatmap(found, value="power")
    rows = found.rows.to_dicts()
    frames = {}
    for row in rows:
        seconds = row["self_j"] / row["power_w"] if row["power_w"] else 0.0
        joules, long = frames.get(row["frame"], (0.0, 0.0))
        frames[row["frame"]] = joules + row["self_j"], long + seconds
    means = {name: joules / long for name, (joules, long) in frames.items()}
    side = next(rows for rows in data_sets(chart) if rows and "sum" in rows[0] and "row" in rows[0])
    assert sorted(row["sum"] for row in side) == pytest.approx(sorted(means.values()))
    assert all(row["text"].endswith("W") for row in side)
    whole = sum(joules for joules, _ in frames.values())
    weighty = [name for name, (joules, _) in frames.items() if joules >= 0.01 * whole]
    hottest = max(weighty, key=means.__getitem__)
    assert " ".join(chart.title.text) == f"{hottest}: {si(means[hottest], 'W')} on average, the highest"
    energy = plot.heatmap(found)
    assert "of the CPU energy" in " ".join(energy.title.text)


def test_the_title_of_a_heatmap_of_power_names_no_frame_that_is_uncertain():
    """Readings every 5 s: what "brief" used in its 2 s at 150 W may be anything; "long" had 100 W for 20 s."""
    made = RecordingBuilder(1000, length_ticks=24_000).host("h").process("p").process("q")
    made.process("p").thread("long 0s..20s, brief 21s..23s")
    made.counter("package 0", [0, 500, 1000, 1500, 2000, 2700], every=5000)
    found = wattribute.attribute(made.recording(), by=("process", "frame"))
    power = {row["frame"]: row["power_w"] for row in found.rows.to_dicts()}
    assert power["brief"] > power["long"]
    assert " ".join(plot.heatmap(found, value="power").title.text).startswith("long: ")


def test_many_frames_and_processes_are_merged_and_said():
    chart = plot.draw("heatmap", [streams([f"kernel_{i:03d}" for i in range(300)], calls=1)], looks={"top": 20})
    assert len(rows_with(chart, "cell_j")) == 21
    said = texts(chart)
    assert any("280 frames with less energy are one row" in text for text in said)
    assert "other (280 frames)" in said
    chart = plot.draw("heatmap", [ranks(count=130, depth=1)])
    assert len({row["column"] for row in rows_with(chart, "cell_j")}) == 44  # three neighbours to a column
    assert any("A column adds up 3 processes" in text for text in texts(chart))


def test_a_long_lane_is_binned_and_keeps_its_energy():
    recording = streams(["a", "b"], lengths=3, calls=5000)
    chart = plot.draw("timeline", [recording])
    rows = rows_with(chart, "self_j")
    assert len(rows) <= 450
    assert sum(row["self_j"] for row in rows) == pytest.approx(expected_j(recording, "attributed"), rel=1e-9)
    assert any("10,000 spans in bins that keep their energy" in text for text in texts(chart))
    assert {row["calls"] for row in rows} != {"1"}


def test_lanes_too_many_to_draw_become_one_bar_with_their_joules():
    recording = ranks(count=20, depth=2)
    chart = plot.draw("timeline", [recording], looks={"top": 5})
    rows = rows_with(chart, "self_j")
    assert len({row["lane"] for row in rows}) == 6
    assert sum(row["lane"] == "other (15 lanes)" for row in rows) == 1
    assert shown_j(chart, "timeline") == pytest.approx(expected_j(recording, "attributed"), rel=1e-9)


def test_power_is_binned_with_sums_and_extremes():
    recording = streams(["a"], readings=4000, lengths=4000)
    rows = rows_with(plot.draw("power", [recording]), "high")
    assert len(rows) == 451
    assert sum(row["energy_j"] for row in rows) == pytest.approx(1000.0)
    assert all(row["low"] <= row["power"] * (1 + 1e-9) and row["power"] <= row["high"] * (1 + 1e-9) for row in rows)


def spiky(spike_w=5000.0):
    """Two GPUs at 100 W and 300 W for 10 s; the second has a reading of 10 ms with a spike."""
    from dataclasses import replace

    from wattribute.model import Device, Signal

    times = np.arange(1001) * 10
    power = [np.full(1000, 100.0), np.full(1000, 300.0)]
    power[1][500] = spike_w
    joules = [np.concatenate([[0.0], np.cumsum(watts * 0.01)]) for watts in power]
    signals = tuple(
        Signal("energy", "counter", "J", times, values, host="n00", device=f"GPU {i}")
        for i, values in enumerate(joules)
    )
    return replace(
        streams([]), signals=signals, devices=tuple(Device(f"GPU {i}", "gpu", "n00") for i in range(2)), topology=()
    )


def tops(chart):
    """The tops of the axes of the tracks."""
    encodings = [layer["encoding"] for part in chart.to_dict()["vconcat"] if "layer" in part for layer in part["layer"]]
    return [e["y"]["scale"]["domain"][1] for e in encodings if e.get("y", {}).get("field") == "power"][::2]


def test_a_late_update_of_a_stale_counter_is_no_spike():
    """100 W counted every 100 ms, read every ms; one update is seen 90 ms late, 10 ms before the next."""
    updates = [0, 100, 200, 300, 490, 500, 600, 700, 800]
    times = np.arange(0, 801)
    values = 10 * (np.searchsorted(updates, times, side="right") - 1)
    made = RecordingBuilder(1000).process("A").thread("main 0..800")
    recording = made.counter("node", values, times, stale=True, latency_s=0.104).recording()
    drawn = tracks.device_track(view := wattribute.attribute(recording), curves.device_curves(view)[0])
    assert drawn.high_w.max() < 110
    assert drawn.energy_j.sum() == pytest.approx(70)  # from the first change on


def test_tracks_share_a_scale_that_a_spike_does_not_stretch():
    shared = plot.draw("power", [spiky()])
    assert tops(shared) == pytest.approx([330.0, 330.0])  # 300 W and a tenth, no room for names of what ran
    assert any("up to 5.00 kW" in text for text in texts(shared))
    assert tops(plot.draw("power", [spiky()], looks={"axes": "own"})) == pytest.approx([100.0, 330.0])
    full = plot.draw("power", [spiky()], looks={"axes": "full"})
    assert tops(full) == pytest.approx([5000.0, 5000.0])
    assert not any("cut off" in text for text in texts(full))
    assert tops(plot.draw("power", [spiky(320.0)])) == pytest.approx([320.0, 320.0])  # near: nothing is cut
    with pytest.raises(OptionError, match="unknown kind of axes 'shard'; did you mean 'shared'"):
        plot.draw("power", [spiky()], looks={"axes": "shard"})


def test_emissions_are_a_rate_whose_area_is_the_sum():
    recording = streams(["a"])
    chart = plot.draw("carbon", [recording], looks={"zone": "FR"})
    emissions = wattribute.emissions(wattribute.attribute(recording, by="device"), zone="FR")
    rows = next(rows for rows in data_sets(chart) if rows and "g_per_h" in rows[0])
    hours = np.diff([row["start"] for row in rows]) / 1000 / 3600  # the axis is in milliseconds
    area = sum(row["g_per_h"] * long for row, long in zip(rows[:-1], hours, strict=True))
    assert area == pytest.approx(emissions.co2e_g, rel=1e-6)
    said = texts(chart)
    assert any(text.startswith("emission rate") and si(emissions.co2e_g, "g") in text for text in said)
    assert not any("intensity of the electricity" in text for text in said)  # the same all the time: the title says it


def test_emissions_of_runs_are_those_of_the_time_that_was_asked_for():
    whole, half = ranks(depth=1), wattribute.attribute(ranks(depth=1), by="device", begin=0.0, end=0.5)
    chart = plot.runs([wattribute.attribute(whole, by="device")] * 4 + [half], zone="FR")
    shown = [rows for rows in data_sets(chart) if rows and rows[0].keys() == {"run", "value", "text"}]
    grams = next([row["value"] for row in rows] for rows in shown if rows[0]["text"].endswith(" mg"))
    joules = next([row["value"] for row in rows] for rows in shown if rows[0]["text"].endswith(" J"))
    assert np.array(grams) / np.array(joules) == pytest.approx([grams[0] / joules[0]] * 5)


def test_panels_that_show_nothing_are_left_out():
    from dataclasses import replace

    recording = streams(["a"])
    dead = [replace(one, values=one.values * 0) if one.name == "gpu_memory" else one for one in recording.signals]
    said = texts(plot.draw("panels", [replace(recording, signals=tuple(dead))]))
    assert "memory" not in said
    assert any("every reading is 0: memory" in text for text in said)
    alone = texts(plot.draw("memory", [replace(recording, signals=tuple(dead))]))
    assert "memory" in alone  # what was asked for is drawn


def test_frames_without_energy_have_no_panel_in_a_distribution():
    from dataclasses import replace

    recording = ranks(depth=2)  # write takes no time of its own in the last reading only; so cut the readings short
    early = tuple(replace(one, times=one.times[:40], values=one.values[:40]) for one in recording.signals)
    said = texts(plot.draw("distribution", [replace(recording, signals=early)]))
    energies = wattribute.attribute(replace(recording, signals=early), by="frame").rows
    without = energies.filter(energies["self_j"] <= 0)["frame"].to_list()
    assert without
    assert not set(without) & set(said)
    assert any(f"{len(without)} frames without any energy are not drawn" in text for text in said)


def test_runs_compare_energy_against_time():
    many = [ranks(power_w=100 + 10 * i, depth=1) for i in range(6)]
    chart = plot.draw("runs", many)
    shown = sorted(row["energy_j"] for row in rows_with(chart, "number"))
    assert shown == pytest.approx([expected_j(one, "measured") for one in many])
    said = [text for text in texts(chart) if ": mean" in text and "median" in text]
    assert [text.partition(":")[0] for text in said] == ["energy", "time", "mean power", "emissions", "emission rate"]
    sets = [rows for rows in data_sets(chart) if rows and "power" in rows[0] and "run" not in rows[0]]
    assert sets
    assert all(0.9 < row["duration_s"] < 1.1 for rows in sets for row in rows)  # lines of equal power end at the frame


def test_panels_have_one_per_quantity_and_memory_its_own():
    recording = streams(["a"])
    said = texts(plot.draw("panels", [recording]))
    assert {"utilisation", "memory"} <= set(said)
    assert any("3.00 GiB" in text for text in texts(plot.draw("memory", [recording])))
    assert "power" in said  # the slope of the energy counter, as no sensor says it
    with pytest.raises(NoDataError, match="no signal of memory"):
        plot.memory(ranks())


OF_RECORDINGS = [chart.name for chart in charts.every() if chart.needs != "experiment"]  # the others: test_history


@pytest.mark.parametrize("kind", [kind for kind in OF_RECORDINGS if kind not in ("runs", "carbon")])
def test_hostile_names_stay_text_in_every_chart(kind):
    theme = ("light", "dark")[OF_RECORDINGS.index(kind) % 2]
    chart = plot.draw(kind, [streams(list(HOSTILE))], looks={"theme": theme})
    drawn = save.svg(chart.to_json())
    root = ElementTree.fromstring(drawn)  # well-formed: no control characters, everything escaped
    assert not [e for e in root.iter() if e.tag.endswith("script")]
    page = save.html(chart.to_json(), "<b>title")
    assert "<script>alert(1)" not in page
    assert page.count("</script>") == 1
    assert "&lt;b&gt;title" in page


@pytest.mark.parametrize(
    "kind", ["power", "timeline", "heatmap", "distribution", "books", "flame", "sunburst", "callgraph"]
)
@pytest.mark.parametrize("energy_j", [1e-9, 10e6])
def test_next_to_nothing_and_megajoules_are_drawn(kind, energy_j):
    said = " ".join(texts(plot.draw(kind, [streams(["only one"], energy_j=energy_j)])))
    assert ("10.0 MJ" in said) == (energy_j > 1)
    assert "nan" not in said.lower()


def test_one_reading_says_so_instead_of_failing():
    said = texts(plot.draw("power", [streams(["a"], readings=1)]))
    assert any("no readings" in text for text in said)


def test_without_spans_power_and_panels_are_still_drawn():
    recording = streams([])
    power = plot.draw("power", [recording])
    assert shown_j(power, "power") == pytest.approx(1000.0)
    assert any("the recording has no spans" in text for text in texts(power))
    assert "utilisation" in texts(plot.draw("panels", [recording]))
    assert "1.00 kJ measured, none of it in spans" in texts(plot.draw("timeline", [recording]))


def test_a_title_replaces_that_of_the_chart(tmp_path):
    target = plot.write("timeline", [streams(["a", "b"])], tmp_path / "x.svg", title="Node 7 <after>")
    assert "Node 7 &lt;after&gt;" in target.read_text()
    with pytest.raises(OptionError, match="--title is for pictures"):
        plot.write("callgraph", [ranks(depth=3)], tmp_path / "x.dot", title="Node 7")


def test_frames_have_colours_of_their_own_that_stay():
    def colours(names):
        chart = plot.draw("timeline", [streams(names)], looks={"colour": "frame"}).to_dict()
        rows = [row for rows in chart["datasets"].values() for row in rows]
        return {row["frame"]: row["ground"] for row in rows if "frame" in row}

    few, many = colours(["a", "b"]), colours(["c", "a", "d", "b"])
    assert len(set(many.values())) == 4
    assert few == {name: many[name] for name in "ab"}


def test_labels_never_leave_the_picture():
    for kind in ("timeline", "heatmap", "flame", "callgraph", "distribution"):
        root = ElementTree.fromstring(save.svg(plot.draw(kind, [streams(list(HOSTILE))]).to_json()))
        assert float(root.attrib["width"]) < 1500


@pytest.mark.parametrize("kind", OF_RECORDINGS)
def test_every_kind_can_be_a_pdf(kind):
    recording = ranks(hosts=2, depth=3) if kind not in ("panels", "memory") else streams(["a"])
    chart = plot.draw(kind, [recording] * (6 if kind == "runs" else 1))
    assert save.pdf(chart.to_json()).startswith(b"%PDF")


def test_wrong_words_are_told():
    recording = streams(["a"])
    with pytest.raises(OptionError, match="did you mean 'heatmap'"):
        plot.draw("heatmp", [recording])
    with pytest.raises(OptionError, match="unknown theme 'drak'; did you mean 'dark'"):
        plot.draw("power", [recording], looks={"theme": "drak"})
    with pytest.raises(OptionError, match="shows one recording"):
        plot.draw("power", [recording, recording])
    with pytest.raises(OptionError, match="unknown value to show"):
        plot.draw("heatmap", [recording], looks={"value": "enery"})
    with pytest.raises(OptionError, match="has no colour"):
        plot.draw("heatmap", [recording], looks={"colour": "kind"})
    with pytest.raises(OptionError, match="give --of once"):
        plot.draw("books", [recording], of=["kernels", "copies"])


def test_host_stacks_are_the_default_of_call_paths_and_can_be_overruled():
    trace = samples.path("trace")
    frames = {row["frame"] for row in rows_with(plot.draw("flame", [trace]), "depth2")}
    assert "main" in frames
    kernels = {row["label"] for row in rows_with(plot.draw("flame", [trace], of="kernels"), "depth2")}
    assert "stencil27<…>" in kernels
    assert "main" not in kernels


def test_the_timeline_of_a_real_trace_has_the_joules_of_the_oracle(shared):
    rows = rows_with(plot.draw("timeline", [shared / "traces" / "simple-mi300"]), "self_j")
    energies = {row["frame"].split("(")[0]: row["self_j"] for row in rows}
    assert energies == pytest.approx({"heavy_kernel": 1842.495723400, "light_kernel": 1119.269555645}, rel=1e-9)


@pytest.mark.parametrize("kind", [kind for kind in SHOWN if kind not in ("icicle", "sunburst")])
def test_two_nodes_add_up(kind):
    recording = wattribute.read(samples.path("trace"))
    _, what = SHOWN[kind]
    chart = plot.draw(kind, [recording])
    assert shown_j(chart, kind) == pytest.approx(expected_j(recording, what), rel=1e-9)


def test_selection_flags_reach_the_chart():
    trace = samples.path("trace")
    whole = wattribute.attribute(trace, begin=1.0, end=2.0).devices.get_column("measured_j").sum()
    assert shown_j(plot.draw("books", [trace], begin=1.0, end=2.0), "books") == pytest.approx(whole)
