"""Names of frames: few come with the page, many as they are drawn; trees and maps stay small among many rows."""

import base64
from dataclasses import replace

import numpy as np
import pytest

from tests.views.page.conftest import PATIENCE_MS
from tests.views.page.hand import HOSTILE, recording
from wattribute import view
from wattribute.model import Frames, Recording
from wattribute.testing.recordings import RecordingBuilder
from wattribute.views.page import answers, frames, selfcontained
from wattribute.views.page.frames import FrameColumns
from wattribute.views.page.session import Session


def with_many_names(made: Recording) -> Recording:
    """The same with more frames than come with the page."""
    more = [(f"unused_{i}(int)", "user", "function") for i in range(frames.FEW)]
    return replace(made, frames=Frames.of([*made.frames.rows(), *more]))


def test_columns_hold_what_the_frames_are(tmp_path):
    table = Frames.of(
        [("_Z4workPfi", "user", "function", "w.c", 7), (HOSTILE, "cuda", "function"), ("\udc80é\n", "mpi")]
    )
    columns = FrameColumns.of(table)
    columns.save(tmp_path)
    for each in (columns, FrameColumns.load(tmp_path, columns.palette)):
        assert each.row(0) == ["work(float*, int)", "work", "function", "w.c", 7]
        assert list(each.names()) == ["work(float*, int)", HOSTILE, "\ufffdé"]
        assert each.matching("WORK").tolist() == [True, False, False]
        kinds = [[each.palette[look]["kind"] for look in column] for column in (each.look, each.gpu)]
        assert kinds == [["user", "other", "mpi"], ["kernel", "kernel", "mpi"]]


def test_a_text_is_found_in_names_only(monkeypatch):
    monkeypatch.setattr(frames, "_PIECE", 5)
    columns = FrameColumns.of(Frames.of([("gemm", "hip", "kernel", "ba.c"), ("aab", "hip"), ("KERNEL 2", "hip")]))
    for text, found in (("a", [1]), ("aa", [1]), ("ba", []), ("Kernel", [2]), ("", [0, 1, 2]), ("mmg", [])):
        assert np.flatnonzero(columns.matching(text)).tolist() == found, text


def test_no_frames_are_no_columns(tmp_path):
    FrameColumns.of(Frames.of([])).save(tmp_path)
    assert FrameColumns.load(tmp_path, []).facts()["rows"] == []


def test_many_names_are_asked_for_and_few_are_there():
    few, many = Session(recording()), Session(with_many_names(recording()))
    assert len(few.facts()["frames"]["rows"]) == few.facts()["frames"]["count"] == 5
    assert many.facts()["frames"]["rows"] is None
    assert len(selfcontained.contents(many)["facts"]["frames"]["rows"]) == frames.FEW + 5
    assert [row[:1] for row in many.answer("names", {"ids": "1,5,-1,999999"})] == [[HOSTILE], ["unused_0(int)"], [], []]
    assert len(many.answer("names", {"ids": ",".join(["1"] * 5000)})) == frames.MOST_NAMES
    bits = base64.b64decode(many.answer("search", {"text": "SCRIPT"})["bits"])
    assert np.flatnonzero(np.unpackbits(np.frombuffer(bits, np.uint8), bitorder="little")).tolist() == [1]
    for session in (few, many):
        session.close()


def until(tab, holds: str) -> None:
    """Wait until an expression holds; the page's policy forbids to evaluate it inside."""
    for _ in range(PATIENCE_MS // 20):
        if tab.page.evaluate(holds):
            return
        tab.page.wait_for_timeout(20)
    raise AssertionError(holds)


def test_the_page_asks_for_the_names_it_draws(tab):
    with view(with_many_names(recording())) as page:
        tab.open(page.url)
        until(tab, "wattribute.facts.frames.known.size > 0")
        assert tab.page.evaluate("wattribute.facts.frames.known.size") < 10
        assert HOSTILE in tab.hover(2.0, "Master thread", 1)
        tab.page.mouse.click(tab.x(1.0), tab.y("HIP[0:1]"))
        tab.page.wait_for_selector("#pick:not([hidden])")
        assert "heavy_kernel(float*, float const*)" in tab.page.locator("#pick").inner_text()
        tab.page.fill("#search", "heavy")
        tab.page.wait_for_selector("#found:has-text('1 of 5,005 frames')")
        tab.page.press("#search", "Enter")
        until(tab, "wattribute.view.to < wattribute.view.length")
        tab.page.fill("#search", "")
        until(tab, "document.getElementById('found').textContent === ''")


def devices(count: int) -> Recording:
    """As many GPUs, each with a kernel of its own, one that all have, and a call below it; the last uses most."""
    made = RecordingBuilder(1000, length_ticks=10_000).host("h")
    for i in range(count):
        made.process(f"p{i}").stream(f"own{i} 0s..4s, all 5s..9s, below 6s..7s", f"s{i}", context=f"c{i}")
        made.link(f"GPU {i}", i).counter(f"GPU {i}", np.arange(11) * (i + 1), np.arange(0, 10_001, 1000))
    return made.recording()


def test_of_many_devices_the_largest_have_a_flame_graph(monkeypatch):
    monkeypatch.setattr(answers, "MOST_TREES", 2)
    session = Session(devices(4))
    flame = session.flame()
    assert [group["label"] for group in flame["groups"]] == [
        "all devices · kernels",
        "GPU 3 · kernels",
        "GPU 2 · kernels",
    ]
    assert flame["more"] == 2
    nodes = {node[0]: node for node in flame["groups"][0]["nodes"]}
    assert nodes["all"][3] == pytest.approx(4 * (1 + 2 + 3 + 4))
    assert [node[0] for node in flame["groups"][0]["nodes"][1:]].count("below") == 1
    session.close()


def test_rows_too_small_to_see_count_in_a_flame_graph(monkeypatch):
    whole = Session(devices(4))
    before = {group["label"]: group["nodes"] for group in whole.flame()["groups"]}
    whole.close()
    monkeypatch.setattr(answers, "SMALLEST", 0.3)
    session = Session(devices(4))
    for group in session.flame()["groups"]:
        root = before[group["label"]][0]
        assert group["nodes"][0][3] == pytest.approx(root[3])
        assert {node[0] for node in group["nodes"]} == {
            node[0] for node in before[group["label"]] if node[3] >= 0.3 * root[3]
        }
    session.close()
