"""Flame graphs and heatmaps from blocks of time: they hold the joules of attribution, and say how coarse they are."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given

from tests.views.page.hand import recording
from tests.views.stories import ranks
from wattribute import attribute
from wattribute.model import Question
from wattribute.testing.recordings import RecordingBuilder, spans
from wattribute.testing.strategies import nested_spans
from wattribute.views.page import block_sums, energy, tiles
from wattribute.views.page.block_sums import CallPaths
from wattribute.views.page.cache_folder import Permissions
from wattribute.views.page.facts import facts
from wattribute.views.page.frames import FrameColumns
from wattribute.views.page.session import GROUPS, Session


@pytest.fixture
def many(monkeypatch):
    """Every recording has too many spans to add them up while somebody waits."""
    for module in ("block_sums", "session"):
        monkeypatch.setattr(f"wattribute.views.page.{module}.MANY_SPANS", 0)


def unused():
    """Spans on one host, a meter on another."""
    made = RecordingBuilder(1000, length_ticks=1000).host("a").process("p").thread("main 0s..1s, f 0.2s..0.4s")
    return made.host("b").counter("package 0", [0, 100], every=1000).recording()


@pytest.fixture(params=["kernels and host", "ranks", "seconds", "unused"])
def session(request, many):
    makers = {
        "kernels and host": recording,
        "ranks": lambda: ranks(hosts=2),
        "seconds": lambda: replace(ranks(), signals=()),
        "unused": unused,
    }
    opened = Session(makers[request.param]())
    yield opened
    opened.close()


def paths(answer):
    """Self and total of each call path of each graph."""
    out = {}
    for group in answer["groups"]:
        full = []
        for name, parent, own, total, *_ in group["nodes"]:
            full.append((*(full[parent] if parent >= 0 else ()), name))
            out[group["label"], full[-1]] = own, total
    return out


def cells(answer):
    return {
        (answer["processes"][cell["process"]]["label"], answer["frames"][cell["frame"]]): (
            cell["self_j"],
            cell["power_w"],
        )
        for cell in answer["cells"]
    }


def close(left, right):
    assert left.keys() == right.keys()
    for name, values in left.items():
        assert values == pytest.approx(right[name], rel=1e-9, abs=1e-9), name


def test_the_whole_recording_is_what_attribution_says(session):
    close(paths(session.flame()), paths(session.flame(exact=True)))
    close(cells(session.heat()), cells(session.heat(exact=True)))
    assert [group["looks"] for group in session.flame()["groups"]] == [
        group["looks"] for group in session.flame(exact=True)["groups"]
    ]


def test_a_range_is_whole_blocks_and_says_which(session):
    length = session.tiles.length
    answer = session.flame((length // 3, length // 2))
    begin, end = (round(edge * session.tiles.facts["clock"]["ticks_per_s"]) for edge in answer["coarse"]["edges"])
    assert abs(begin - length // 3) <= length / block_sums.BLOCKS
    assert abs(end - length // 2) <= length / block_sums.BLOCKS
    close(paths(answer), paths(session.flame((begin, end), exact=True)))
    close(cells(session.heat((length // 3, length // 2))), cells(session.heat((begin, end), exact=True)))


@pytest.mark.parametrize("made", [recording, lambda: ranks(hosts=2)], ids=["kernels and host", "ranks"])
def test_rows_of_a_range_are_whole_blocks_too(many, made, monkeypatch):
    session = Session(made())
    length = session.tiles.length
    for by in GROUPS:
        shown = session.answer("table", {"by": by, "from": str(length // 3), "to": str(length // 2)})
        edges = tuple(round(edge * session.tiles.facts["clock"]["ticks_per_s"]) for edge in shown["coarse"]["edges"])
        exact = session.table(edges, by, exact=True)
        for name in ("self_j", "self_ns", "power_w") if by == "frame" else ("self_j",):
            rows, wanted = ({row["frame"]: row[name] for row in one["rows"] if row["self_j"]} for one in (shown, exact))
            assert rows == pytest.approx(wanted), (by, name)
        for name in ("key", "measured_j", "attributed_j", "idle_j"):
            mine, wanted = ([book[name] for book in one["devices"]] for one in (shown, exact))
            assert mine == (wanted if name == "key" else pytest.approx(wanted, abs=1e-9)), (by, name)
    whole = session.table()
    assert "coarse" not in whole  # it came with the tiles
    monkeypatch.setattr(block_sums, "MOST_ROWS", 1)
    few = Session(made())
    cut = few.table((0, length))
    assert (len(cut["rows"]), cut["more"]) == (1, len({row["frame"] for row in whole["rows"] if row["self_j"]}) - 1)
    assert cut["rows"][0]["self_j"] + cut["more_j"] == pytest.approx(sum(row["self_j"] for row in whole["rows"]))
    session.close()
    few.close()


def test_what_is_folded_stays_in_the_sums(many, monkeypatch):
    monkeypatch.setattr(block_sums, "MOST_PATHS", 3)
    monkeypatch.setattr(block_sums, "HEAT_FRAMES", 2)
    monkeypatch.setattr(block_sums, "MOST_PROCESSES", 2)
    session = Session(ranks(hosts=2))
    exact, coarse = session.flame(exact=True), session.flame()
    for left, right in zip(coarse["groups"], exact["groups"], strict=True):
        assert len(left["nodes"]) <= 4 < len(right["nodes"])
        assert left["nodes"][0][3] == pytest.approx(right["nodes"][0][3])
    heat = session.heat()
    assert (len(heat["frames"]), len(heat["processes"]), heat["more_processes"]) == (2, 2, 2)
    shown = sum(cell["self_j"] for cell in heat["cells"])
    attributed = sum(book["attributed_j"] for book in session.tiles.facts["devices"])
    assert shown + heat["more_j"] + heat["more_processes_j"] == pytest.approx(attributed)
    session.close()


def test_a_narrow_range_of_a_large_recording_is_exact(monkeypatch):
    monkeypatch.setattr(block_sums, "MANY_SPANS", 20)
    monkeypatch.setattr(block_sums, "LANE_COST", 0)
    monkeypatch.setattr("wattribute.views.page.session.MANY_SPANS", 20)
    session = Session(ranks())
    assert "coarse" in session.answer("flame", {})
    assert "coarse" not in session.answer("flame", {"exact": "1"})
    assert "coarse" not in session.answer("heat", {"from": "0", "to": str(session.tiles.length // 50)})
    session.close()


@pytest.mark.parametrize("made", [ranks(), replace(ranks(), signals=())], ids=["metered", "no meter"])
def test_tiles_built_without_views_have_blocks_of_their_own_energy(many, tmp_path, made):
    held = energy.metered(made, attribute(made) if made.signals else None, Question())
    columns = FrameColumns.of(made.frames)
    tiles.build(made, held, columns, facts(made, held, "x"), {}, tmp_path / "tiles", "", Permissions())
    built = tiles.Tiles(tmp_path / "tiles")
    groups = built.blocks.flame(None)["groups"]
    assert [group["nodes"][0][3] for group in groups] == pytest.approx([book["attributed_j"] for book in held.books])
    built.close()


@given(nested_spans(most=30))
def test_a_path_is_its_callers_path_and_a_frame(table):
    known = CallPaths(4)
    number = known.number(table)
    assert (known.number(table) == number).all()  # the second time nothing is new
    for row, path in enumerate(number.tolist()):
        above = int(table.parent[row])
        assert known.frame[path] == table.frame[row]
        assert known.parent[path] == (number[above] if above >= 0 else 0)


def test_folding_keeps_the_largest_with_their_callers():
    # main calls f, which calls g; h stands alone
    known = CallPaths(4)
    main, f, g, h = known.number(spans([(0, 10, 0, -1), (1, 5, 1, 0), (2, 3, 2, 1), (10, 11, 3, -1)])).tolist()
    joules = np.zeros(5)
    joules[[main, f, g, h]] = 1, 0, 5, 2
    kept, label = known.fold(joules, 2)
    assert kept.tolist() == [0, main, f]  # totals: main 6, f 5 (as g, which it calls), h 2
    assert label[[0, main, f, g, h]].tolist() == [1, 2, 4, 5, 1]
