"""The page in a real browser: what people see and do, served and as one file."""

import csv
import json
import math
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import replace

import pytest

from tests.views.page.conftest import PATIENCE_MS
from tests.views.page.hand import HOSTILE, recording, start
from tests.views.stories import ranks
from wattribute import attribute, save, view, write_page
from wattribute.model import Device, Missing
from wattribute.testing.recordings import RecordingBuilder, counter, gauge
from wattribute.views import numbers

PER_S = 3699958577  # ticks, in simple-mi300


@pytest.fixture(scope="module")
def simple(shared):
    return shared / "traces" / "simple-mi300"


@pytest.fixture(scope="module")
def served(simple):
    """The page of simple-mi300, from the server."""
    with view(simple) as page:
        yield page.url


@pytest.fixture(scope="module", params=["served", "one file"])
def url(request, simple, served, tmp_path_factory):
    """The page of simple-mi300, from the server and from ``file://``."""
    if request.param == "served":
        return served
    path = tmp_path_factory.mktemp("html") / "page.html"
    write_page(simple, path)
    return path.as_uri()


def test_zoom_by_wheel_at_the_pointer(tab, url):
    tab.open(url)
    before = tab.shown()
    at = tab.x(3.0)
    tab.page.mouse.move(at, tab.y("HIP[0:0]"))
    tab.page.mouse.wheel(0, -100)
    tab.settle()
    after = tab.shown()
    assert after[1] - after[0] == pytest.approx((before[1] - before[0]) / 1.35, rel=0.05)
    assert tab.x(3.0) == pytest.approx(at, abs=1)  # the moment under the pointer stays there
    assert "v=" in tab.page.url  # a view is its URL hash
    tab.page.keyboard.press("0")
    assert tab.shown() == pytest.approx(before, abs=1e-6)


def test_the_power_under_the_pointer(tab, url):
    tab.open(url)
    box = tab.page.locator("#power").bounding_box()
    tab.page.mouse.move(tab.x(3.0), box["y"] + 30)  # the first track, GPU 0, while heavy_kernel runs
    text = tab.page.locator("#card").inner_text()
    assert "GPU 0" in text
    assert 490 < float(re.search(r"mean power\s+([\d.]+) W", text)[1]) < 530


def test_hovering_a_kernel_shows_its_joules(tab, url):
    text = tab.open(url).hover(2.0, "HIP[0:0]")
    assert "heavy_kernel(float*, float const*)" in text
    assert "1.84 kJ" in text
    assert "1842.495723 J" in text  # the oracle: 1842.495723400 J
    assert "389 W" in text
    assert "4.74 s" in text
    assert "82 % of GPU 0" in text
    assert "at least" in text


def test_hovering_code_without_a_meter_says_so(tab, served):
    text = tab.open(served).hover(2.0, "Master thread", depth=1)
    assert "hipEventSynchronize" in text
    assert "no meter" in text


def test_search_dims_filters_and_goes_to_the_next(tab, url):
    tab.open(url)
    tab.page.keyboard.press("f")
    tab.page.keyboard.type("LIGHT_k")
    tab.settle()
    assert "2 of " in tab.page.locator("#found").inner_text()
    assert tab.page.locator(".frames tbody tr").count() == 1
    for _ in range(2):  # the host's stub first, then the kernel, which runs from 5.57 s to 7.19 s
        tab.page.keyboard.press("Enter")
        tab.settle()
    a, b = tab.shown()
    assert a < 5.57
    assert b > 7.19
    tab.page.keyboard.press("Escape")
    tab.page.keyboard.press("Escape")
    assert tab.page.locator(".frames tbody tr").count() == 2


def test_the_sums_of_a_brushed_range_are_the_command_lines(tab, url, simple):
    a, b = tab.open(url).brush(1.0, 5.7)
    assert tab.joules("#sum") != []
    found = attribute(simple, begin=a / PER_S, end=b / PER_S)
    assert tab.joules("#sum")[0] == pytest.approx(found.rows["self_j"].sum(), rel=1e-9)
    books = [row for row in found.devices.to_dicts() if row["measured_j"] > 0]
    want = [value for row in books for value in (row["measured_j"], row["attributed_j"], row["idle_j"])]
    assert tab.joules(".book-row [data-j]") == pytest.approx(want, rel=1e-9, abs=1e-9)
    tab.page.keyboard.press("Escape")
    tab.settle()
    assert tab.joules("#sum")[0] == pytest.approx(1842.4957234 + 1119.269555645, rel=1e-9)


def test_a_table_that_was_cut_sums_up_all(tab, monkeypatch):
    monkeypatch.setattr("wattribute.views.page.answers.MOST_ROWS", 1)
    with view(recording()) as page:
        tab.open(page.url)
        assert tab.joules("#sum") == [pytest.approx(1400)]
        assert "1 smaller rows are in the sum" in tab.page.locator(".frames tfoot").inner_text()


def test_the_flame_graph_follows_the_brush(tab, url, simple):
    tab.open(url).tab("flame")
    a, b = tab.brush(0.1, 4.0)
    groups = {group["label"]: group["nodes"][0][3] for group in tab.page.evaluate("wattribute.tabs[1].data.groups")}
    assert next(iter(groups)) == "all devices · host"  # the host's call stacks hold most: they are shown first
    for of in ("kernels", "host"):
        rows = attribute(simple, begin=a / PER_S, end=b / PER_S, of=of).rows
        assert groups[f"all devices · {of}"] == pytest.approx(rows["self_j"].sum(), rel=1e-9)
        want = rows.filter(rows["device"] == "GPU 0")["self_j"].sum()
        assert groups[f"GPU 0 · {of}"] == pytest.approx(want, rel=1e-9)
    box = tab.page.locator("#flame").bounding_box()
    tab.page.mouse.click(box["x"] + 300, box["y"] + box["height"] - 26)  # zoom to main, on top of "all"
    assert tab.page.evaluate("wattribute.tabs[1].root") == 1


def test_the_other_tabs(tab, url):
    tab.open(url)
    for name, text in (("heatmap", "2 largest"), ("sensors", "energy_count"), ("compare", "Nothing to compare with")):
        tab.tab(name)
        assert text in tab.page.locator("#panel").inner_text()
        assert f"tab={name}" in tab.page.url


def test_a_hash_brings_the_view_back(tab, served):
    tab.open(f"{served}#v=1000000000,9000000000&b=2000000000,4000000000&tab=flame&q=heavy&theme=dark")
    assert tab.page.evaluate("document.documentElement.dataset.theme") == "dark"
    assert tab.page.evaluate("wattribute.view.brush") == [2_000_000_000, 4_000_000_000]
    assert tab.page.locator("#search").input_value() == "heavy"
    assert tab.page.locator("[aria-selected=true]").inner_text() == "Flame"


def test_keys(tab, served):
    tab.open(served)
    tab.page.keyboard.press("?")
    assert "zoom at the pointer" in tab.page.locator("#keys").inner_text()
    tab.page.keyboard.press("Escape")
    whole = tab.shown()
    tab.page.keyboard.press("w")
    tab.page.keyboard.press("d")
    a, b = tab.shown()
    assert b - a < whole[1] - whole[0]
    assert (a + b) / 2 > sum(whole) / 2
    theme = tab.page.evaluate("document.documentElement.dataset.theme")
    tab.page.keyboard.press("t")
    assert tab.page.evaluate("document.documentElement.dataset.theme") != theme
    tab.page.keyboard.press("b")
    assert tab.page.evaluate("wattribute.view.brush") is not None


def test_one_file_asks_the_network_for_nothing(tab, simple, tmp_path):
    write_page(simple, tmp_path / "page.html")
    tab.page.context.set_offline(True)
    tab.open((tmp_path / "page.html").as_uri()).tab("flame")
    assert all(url.startswith(("file:", "data:")) for url in tab.requests)


def test_one_file_of_a_large_recording_brushes_whole_bins(tab, tmp_path, monkeypatch):
    monkeypatch.setattr("wattribute.views.page.selfcontained.SMALL", 100)
    made = recording(kernels=400, length_s=64)  # 256 bins of 250 ticks
    write_page(made, tmp_path / "page.html")
    tab.open((tmp_path / "page.html").as_uri()).brush(0.9, 5.4)
    note = tab.page.locator(".tools").inner_text()
    a, b = (float(text) for text in re.findall(r"([\d.]+) s", note)[:2])
    assert "whole bins" in note
    assert a == pytest.approx(0.9, abs=0.25)
    found = attribute(made, begin=a, end=b)
    assert tab.joules("#sum")[0] == pytest.approx(found.rows["self_j"].sum(), rel=1e-9)
    assert tab.joules(".book-row [data-j]")[0] == pytest.approx(found.devices["measured_j"][0], rel=1e-9)


def test_no_joule_is_twice_in_a_flame_graph(tab, tmp_path):
    # the package is the host's by default, the GPU the kernels'; the host's view holds both, each once
    made = recording()
    package = counter([0, 1000], every=10_000, name="rapl:package-0", device="package 0", host="node01")
    devices = (*made.devices, Device("package 0", "cpu", "node01"))
    made = replace(made, signals=(*made.signals, package), devices=devices, topology=())
    hosted = attribute(made, of="host").rows["self_j"].sum()
    read = "wattribute.tabs[1].data.groups.map((group) => [group.label, group.nodes[0][3]])"
    write_page(made, tmp_path / "page.html")
    with view(made) as page:
        for address in (page.url, (tmp_path / "page.html").as_uri()):
            for range_ in ("", "&b=0,10000"):
                tab.page.goto("about:blank")
                groups = dict(tab.open(f"{address}#tab=flame{range_}").page.evaluate(read))
                assert groups["all devices · host"] == pytest.approx(hosted, rel=1e-9)
                assert groups["package 0 · host"] == pytest.approx(1000, rel=1e-9)
                assert groups["GPU 0 · kernels"] == pytest.approx(1400, rel=1e-9)
                assert groups["GPU 0 · host"] == pytest.approx(hosted - 1000, rel=1e-9)


def test_hostile_names_are_text(tab, tmp_path):
    write_page(recording(), tmp_path / "page.html")
    alerts = []
    tab.page.on("dialog", lambda dialog: alerts.append(dialog.message) or dialog.dismiss())
    tab.open((tmp_path / "page.html").as_uri())
    assert HOSTILE in tab.hover(2.0, "Master thread", depth=1)
    assert HOSTILE in tab.page.locator("#title").inner_text()
    for name in ("flame", "heatmap", "sensors"):
        tab.tab(name)
    assert alerts == []
    assert tab.page.locator("script").count() == 3  # the import map, the data, the start: ours


def test_bins_of_a_dense_lane_tell_their_largest_frames(tab):
    with view(recording(kernels=8000)) as page:
        text = tab.open(page.url).hover(2.0, "HIP[0:1]")
        assert re.search(r"mostly (heavy_kernel|计算能量)", text)
        assert "energy here" in text
        drawn = "wattribute.lanes.data.parts.map((part) => [part.lane, part.mode])"
        assert tab.page.evaluate(drawn) == [[0, "spans"], [2, "bins"], [2, "over"], [1, "spans"]]
        sums = "wattribute.lanes.data.parts[1].f64.reduce((sum, value, i) => (i % 3 ? sum : sum + value), 0)"
        assert tab.page.evaluate(sums) == pytest.approx(1400)  # 100 W for 5 s, 300 W for 3 s: nothing vanished


def test_two_recordings_side_by_side(tab, tmp_path):
    with view(recording(), compare=recording(kernels=1)) as page:
        tab.open(page.url).tab("compare")
        text = tab.page.locator("#panel").inner_text()
        # A: 600 J heavy_kernel and 800 J the other; B: one heavy_kernel of 1400 J
        assert "+800 J" in text
        assert "−800 J" in text


def test_a_second_tab_and_a_killed_server(chromium, tab, simple):
    process, address = start(simple)
    tab.open(address)
    other = chromium.new_page()
    other.set_default_timeout(PATIENCE_MS)
    other.goto(address)
    other.wait_for_selector("body[data-loaded]")
    process.kill()
    process.communicate()
    other.wait_for_selector("#banner:not([hidden])")
    assert "server has stopped" in other.locator("#banner").inner_text()
    assert other.locator("#title").inner_text() == "simple-mi300"  # what is on screen stays
    other.close()
    tab.page.wait_for_selector("#banner:not([hidden])")
    tab.complaints[:] = [text for text in tab.complaints if "net::ERR_" not in text]


def test_a_deleted_recording(tab, tmp_path):
    save(recording(), tmp_path / "run.watt")
    with view(tmp_path / "run.watt") as page:
        tab.open(page.url)
        shutil.rmtree(tmp_path / "run.watt")
        tab.page.wait_for_selector("#banner:not([hidden])")
        banner = tab.page.locator("#banner").inner_text()
        assert "was removed" in banner or "no such file" in banner  # by which question comes first
        tab.page.mouse.wheel(0, -100)  # lanes come from the tiles and still zoom
        assert "heavy_kernel" in tab.hover(1.0, "HIP[0:1]")
    tab.complaints[:] = [text for text in tab.complaints if "410 (Gone)" not in text]


def test_a_recording_that_grows_is_followed(tab, tmp_path):
    path = tmp_path / "run.watt"
    save(recording(), path)
    with view(path) as page:
        tab.open(page.url)
        assert tab.shown()[1] == pytest.approx(10)
        longer = recording(length_s=20)
        shutil.rmtree(path)
        save(longer, tmp_path / "new.watt")
        (tmp_path / "new.watt").rename(path)
        tab.page.wait_for_function("() => wattribute.view.length === 20000")
        assert "20.0 s" in tab.page.locator("#totals").inner_text()


def test_a_recording_that_was_replaced_is_shown_from_the_start(tab, tmp_path):
    path = tmp_path / "run.watt"
    save(recording(), path)
    with view(path) as page:
        tab.open(f"{page.url}#b=1000,2000")
        shutil.rmtree(path)
        save(recording(kernels=3), path)  # 2667 ms each
        tab.page.wait_for_selector("#notice:not([hidden])")
        tab.settle()
        assert "was replaced" in tab.page.locator("#notice").inner_text()
        assert tab.page.evaluate("wattribute.view.brush") is None
        assert "2.67 s" in tab.hover(1.0, "HIP[0:1]")
    tab.complaints[:] = [text for text in tab.complaints if "409 (Conflict)" not in text]


def test_what_is_missing_stands_at_the_top(tab):
    made = recording()
    with view(replace(made, missing=(Missing(1, 9, "file not found"),))) as page:
        tab.open(page.url)
        assert "events are missing: 1 file could not be read" in tab.page.locator("#missing").inner_text()


AREAS = """lane => {
  const { lanes, axis } = wattribute;
  const row = lanes.rows.find((row) => (lane === null ? row.type === "idle" : row.lane?.location === lane));
  const boxes = lanes.rectangles(row);
  const sum = (list) => lanes.joulesPerPixel(row) * list.reduce((total, box) => total + box.wide * box.tall, 0);
  const ends = [Math.min(...boxes.map((box) => box.x)), Math.max(...boxes.map((box) => box.x + box.wide))];
  const tops = boxes.map((box) => box.base + box.tall);
  const fits = Math.max(...tops) <= row.height - 5 + 0.01;
  const [busy, idle] = [boxes.filter((box) => box.frame >= 0), boxes.filter((box) => box.frame < 0)];
  return [sum(busy), sum(idle), ...ends.map((x) => Math.round(axis.ticks(x))), fits];
}"""


@pytest.mark.parametrize("zoom", ["", "#v=1000,6000", "#v=7300,8900", "#v=3990,4010"])
@pytest.mark.parametrize("kernels", [4, 8000])
def test_the_areas_of_a_lane_are_its_joules(tab, zoom, kernels):
    made = recording(kernels)
    with view(made) as page:
        busy, idle, a, b, fits = tab.open(page.url + zoom).page.evaluate(AREAS, 2)
    book = attribute(made, begin=a / 1000, end=b / 1000).devices.to_dicts()[0]
    assert (busy, idle) == (
        pytest.approx(book["attributed_j"], rel=1e-6),
        pytest.approx(book["idle_j"], rel=1e-6, abs=1e-6),
    )
    assert fits
    if not zoom:
        assert (busy, idle) == (pytest.approx(1400), pytest.approx(600))


def test_the_idle_time_of_a_shared_device_has_a_row(tab, tmp_path):
    # package 0 burns 100 W for 10 s; two threads share it from 0 to 4 s, one has it until 6 s, then it idles
    made = RecordingBuilder(1000, length_ticks=10_000).host("h").process("p")
    made.thread("f 0s..4s", "one").thread("g 0s..6s", "two")
    made.counter("package 0", [0, 1000], every=10_000)
    write_page(made.recording(), tmp_path / "page.html")
    with view(made.recording()) as page:
        for address in (page.url, (tmp_path / "page.html").as_uri()):
            tab.open(address)
            assert tab.page.evaluate(AREAS, 0)[0] == pytest.approx(200)
            assert tab.page.evaluate(AREAS, 1)[0] == pytest.approx(200 + 200)
            assert tab.page.evaluate(AREAS, None)[1] == pytest.approx(400)


def test_the_band_is_the_bound(tab):
    # readings every 500 ms at 100 W: a kernel from 4 s to 6 s begins and ends at a reading, one from 1.1 s to 1.2 s not
    made = RecordingBuilder(1000, length_ticks=3000).host("h").process("p")
    made.stream([(1100, 1200, "k"), (1500, 2000, "k")], "s", context="c")
    made.counter("GPU 0", [0, 50, 100, 150, 200, 250, 300], every=500)
    band = """() => {
      const list = [];
      wattribute.lanes.parts.lanes.get(0).limits(0, 3000, (...step) => list.push(step));
      return list;
    }"""
    with view(made.recording()) as page:
        assert tab.open(page.url).page.evaluate(band) == [[1000, 1500, 0, pytest.approx(50)]]


def test_sums_follow_the_drag_and_rows_the_release(tab, simple, url):
    tab.open(url)
    asked = len([each for each in tab.requests if "api/table" in each])
    y = tab.page.locator("#lanes").bounding_box()["y"] + 30
    tab.page.keyboard.down("Shift")
    tab.page.mouse.move(tab.x(1.0), y)
    tab.page.mouse.down()
    tab.page.mouse.move(tab.x(3.0), y)
    tab.page.wait_for_function("() => wattribute.burned && wattribute.power.brushed.includes('J')")
    a, b = tab.page.evaluate("wattribute.view.brush")
    devices = attribute(simple, begin=a / PER_S, end=b / PER_S).devices.filter("counted")
    assert tab.page.evaluate("wattribute.burned.energy_j") == pytest.approx(devices["measured_j"].sum(), rel=1e-9)
    said = tab.page.locator("#range").inner_text()
    assert all(f" {unit}" in said for unit in ("s", "kJ", "W"))
    assert len([each for each in tab.requests if "api/table" in each]) == asked  # rows only on release
    tab.page.mouse.up()
    tab.page.keyboard.up("Shift")
    tab.settle()
    found = attribute(simple, begin=a / PER_S, end=b / PER_S)
    assert tab.joules("#sum")[0] == pytest.approx(found.rows["self_j"].sum(), rel=1e-9)


def test_a_selected_span_has_a_pane_and_a_command_line(tab, served, simple):
    tab.open(served)
    tab.page.mouse.click(tab.x(2.0), tab.y("HIP[0:0]"))
    tab.page.wait_for_selector("#pick:not([hidden])")
    text = tab.page.locator("#pick").inner_text()
    assert "heavy_kernel(float*, float const*)" in text
    assert "1842.495723 J" in text
    words = shlex.split(tab.page.locator("#pick pre").inner_text())
    done = subprocess.run(
        [sys.executable, "-m", *words, "--format", "json"], capture_output=True, text=True, check=True
    )
    rows = json.loads(done.stdout)["rows"]
    assert max(row["total_j"] for row in rows) == pytest.approx(1842.495723, abs=1e-5)
    tab.page.wait_for_function("location.href.includes('pick=')")  # it is written a moment later
    tab.page.goto("about:blank")
    tab.page.go_back()  # a link to a selected span opens its pane
    tab.page.wait_for_selector("#pick:not([hidden])")
    tab.settle()
    tab.page.keyboard.press("Escape")
    tab.page.wait_for_selector("#pick", state="hidden")


def test_spans_are_selected_by_keyboard(tab, served):
    tab.open(served)
    tab.page.locator("#lanes").focus()
    tab.page.keyboard.press("Enter")
    tab.page.wait_for_selector("#pick:not([hidden])")
    first = tab.page.evaluate("wattribute.view.pick")
    tab.page.keyboard.press("n")
    assert tab.page.evaluate("wattribute.view.pick") != first


def test_the_table_by_process_and_as_csv(tab, url):
    tab.open(url)
    tab.page.select_option("#by", "process")
    tab.settle()
    assert "Process" in tab.page.locator(".frames tbody").inner_text()
    assert tab.joules("#sum")[0] == pytest.approx(1842.4957234 + 1119.269555645, rel=1e-9)
    tab.page.select_option("#by", "frame")
    tab.settle()
    tab.page.click("text=full names")
    assert "heavy_kernel(float*, float const*)" in tab.page.locator(".frames tbody").inner_text()
    with tab.page.expect_download() as download:
        tab.page.click("#csv")
    rows = list(csv.DictReader(download.value.path().read_text().splitlines()))
    assert rows[0]["frame"] == "heavy_kernel(float*, float const*)"
    assert float(rows[0]["self_j"]) == pytest.approx(1842.4957234, rel=1e-9)


def test_back_and_forward(tab, served):
    tab.open(served)
    whole = tab.shown()
    tab.page.wait_for_timeout(900)
    tab.tab("flame")
    tab.page.wait_for_timeout(900)
    tab.page.keyboard.press("w")
    tab.page.wait_for_timeout(400)
    zoomed = tab.shown()
    tab.page.go_back()
    tab.page.wait_for_function("() => wattribute.view.from === 0")
    assert tab.shown() == pytest.approx(whole)
    assert tab.page.locator("[aria-selected=true]").inner_text() == "Flame"
    tab.page.go_forward()
    tab.page.wait_for_function("() => wattribute.view.from > 0")
    assert tab.shown() == pytest.approx(zoomed)
    tab.settle()


def test_many_lanes_fold_filter_and_pin(tab):
    made = RecordingBuilder(1000, length_ticks=1000)
    for host in ("node01", "node02"):
        made.host(host)
        for rank in range(40):
            made.process(f"{host} rank {rank}").thread("f 0..900", "main").thread("g 0..100", "helper")
        made.counter(f"package {host}", [0, 100], every=1000)
    with view(made.recording()) as page:
        tab.open(page.url)
        kinds = "wattribute.lanes.rows.map((row) => row.type)"
        assert tab.page.evaluate(kinds) == ["host", "host"]
        row = "wattribute.lanes.rows[0]"
        energy = f"wattribute.lanes.rectangles({row}).reduce((sum, box) => sum + box.wide * box.tall, 0)"
        assert tab.page.evaluate(f"{energy} * wattribute.lanes.joulesPerPixel({row})") == pytest.approx(100, rel=1e-3)
        box = tab.page.locator("#lanes").bounding_box()
        tab.page.mouse.click(box["x"] + 60, box["y"] + 8)  # open the first host
        tab.settle()
        assert "folded=h0" in tab.page.url
        tab.page.fill("#filter", "node02 rank 7")
        tab.settle()
        assert tab.page.evaluate("wattribute.lanes.rows.filter((row) => row.lane).map((row) => row.lane.name)") == [
            "main",
            "helper",
        ]
        tab.page.mouse.move(tab.x(0.5), tab.y("helper"))
        tab.page.locator("#lanes").focus()
        tab.page.keyboard.press("p")
        tab.page.fill("#filter", "")
        tab.settle()
        assert tab.page.evaluate(kinds)[:2] == ["pinned", "lane"]


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_has_no_serious_findings(chromium, axe, served, theme):
    context = chromium.new_context(viewport={"width": 1400, "height": 860}, bypass_csp=True)
    page = context.new_page()
    page.set_default_timeout(PATIENCE_MS)
    for name in ("table", "flame", "heatmap", "sensors", "compare"):
        page.goto("about:blank")
        page.goto(f"{served}#tab={name}&theme={theme}&pick=1,0")
        page.wait_for_selector("body[data-loaded]")
        page.wait_for_selector('#panel[aria-busy="false"]')
        page.evaluate(axe)
        found = page.evaluate("axe.run().then((result) => result.violations)")
        assert [each["id"] for each in found if each["impact"] in ("serious", "critical")] == [], name
    context.close()


def test_a_phone_has_no_overlaps(chromium, served):
    context = chromium.new_context(viewport={"width": 390, "height": 844})
    page = context.new_page()
    page.set_default_timeout(PATIENCE_MS)
    page.goto(served)
    page.wait_for_selector("body[data-loaded]")
    page.wait_for_selector('#panel[aria-busy="false"]')
    assert page.evaluate("document.scrollingElement.scrollWidth") <= 390
    selector = "header > *, #books, #power, #lanes, #overview, nav [role=tab], #export, #range, #panel .tools > *"
    boxes = [each.bounding_box() for each in page.locator(selector).all() if each.is_visible()]
    boxes = [box for box in boxes if box and box["width"] and box["height"]]
    for i, a in enumerate(boxes):
        for b in boxes[:i]:
            apart_x = a["x"] >= b["x"] + b["width"] - 0.5 or b["x"] >= a["x"] + a["width"] - 0.5
            apart_y = a["y"] >= b["y"] + b["height"] - 0.5 or b["y"] >= a["y"] + a["height"] - 0.5
            assert apart_x or apart_y, (a, b)
    before = page.evaluate("wattribute.view.to - wattribute.view.from")
    page.click("#closer")
    assert page.evaluate("wattribute.view.to - wattribute.view.from") < before
    context.close()


def test_the_divider_takes_the_arrow_keys(tab, served):
    tab.open(served)
    tall = "document.getElementById('below').offsetHeight"
    before = tab.page.evaluate(tall)
    divider = tab.page.get_by_role("separator")
    divider.focus()
    for key, height in (("ArrowUp", before + 20), ("Shift+ArrowUp", before + 120), ("ArrowDown", before + 100)):
        tab.page.keyboard.press(key)
        assert tab.page.evaluate(tall) == height == int(divider.get_attribute("aria-valuenow"))
    for key, end in (("Home", "aria-valuemin"), ("End", "aria-valuemax")):
        tab.page.keyboard.press(key)
        assert divider.get_attribute("aria-valuenow") == divider.get_attribute(end)
        assert tab.page.evaluate(tall) == int(divider.get_attribute(end))
    tab.settle()


def test_pictures_of_many_spans_come_from_the_tiles_and_say_so(tab, monkeypatch):
    for module in ("block_sums", "session"):
        monkeypatch.setattr(f"wattribute.views.page.{module}.MANY_SPANS", 0)
    with view(ranks()) as page:
        tab.open(page.url)
        for name in ("flame", "heatmap"):
            tab.tab(name)
            assert "At the tiles' resolution" in tab.page.locator(".tools").inner_text()
            drawn = tab.page.evaluate("wattribute.tab.data")
            tab.page.click("text=exact")
            tab.settle()
            assert "resolution" not in tab.page.locator(".tools").inner_text()
            exact = tab.page.evaluate("wattribute.tab.data")
            for each in (drawn, exact):
                nodes = [group["nodes"][0] for group in each.get("groups", [])]
                cells = [[cell["self_j"]] for cell in each.get("cells", [])]
                each["sum"] = sum(node[3] for node in nodes) + sum(cell for (cell,) in cells)
            assert drawn["sum"] == pytest.approx(exact["sum"])
        tab.brush(0.3, 0.62)
        assert re.search(r"it shows 30\d.* ms … 6\d\d.* ms", tab.page.locator(".tools").inner_text())
        tab.tab("table")
        assert "At the tiles' resolution" in tab.page.locator(".tools").inner_text()
        assert tab.page.evaluate("wattribute.tab.data.rows[0].calls") is None
        tab.page.click("text=exact")
        tab.settle()
        assert "resolution" not in tab.page.locator(".tools").inner_text()
        assert tab.page.evaluate("wattribute.tab.data.rows[0].calls") > 0


def test_exports_of_what_is_on_screen(tab, served, simple):
    tab.open(f"{served}#v=1000000000,9000000000")
    for what, begins in (("PNG", b"\x89PNG"), ("CSV", b"frame,self_j"), ("Perfetto", b"\x0a")):
        with tab.page.expect_download() as download:
            tab.page.select_option("#export", what)
        assert download.value.path().read_bytes().startswith(begins)
        if what == "CSV":  # of what is visible, as nothing is brushed
            rows = csv.DictReader(download.value.path().read_text().splitlines())
            shown = attribute(simple, by="frame", begin=1e9 / PER_S, end=9e9 / PER_S).rows
            assert sum(float(row["self_j"]) for row in rows) == pytest.approx(shown["self_j"].sum(), rel=1e-9)


def test_names_read_on_every_colour_of_the_scale(tab, served):
    tab.open(f"{served}#c=power")
    script = """() => import('wattribute/format.js').then(({ inkOn, viridis }) => {
      const light = (rgb) => rgb.map((c) => (c /= 255) <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
        .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
      const contrast = (rgb) => inkOn(rgb) === '#000000' ? (light(rgb) + 0.05) / 0.05 : 1.05 / (light(rgb) + 0.05);
      return Math.min(...Array.from({ length: 101 }, (_, i) => contrast(viridis(i / 100))));
    })"""
    assert tab.page.evaluate(script) >= 4.5
    assert tab.page.evaluate("wattribute.lanes.powerLook([0, 10, NaN], 0).ink")


def test_a_spike_does_not_stretch_the_scale_of_power(tab):
    from tests.views.charts.test_plot import spiky

    with view(spiky()) as page:  # 100 W and 300 W, and 5 kW for 10 ms of 10 s
        tab.open(page.url)
        assert tab.page.evaluate("wattribute.power.scales.gpu") == 500


def test_any_signal_can_be_a_track(tab):
    made = recording()
    heat = gauge([20.0, 80.0, 40.0], every=5000, name="temperature", unit="°C", host="node01")
    with view(replace(made, signals=(*made.signals, heat))) as page:
        tab.open(page.url).tab("sensors")
        tab.page.check("[aria-label^='temperature']")
        tab.page.wait_for_function("() => wattribute.power.data.parts.some((part) => part.device === 's1')")
        box = tab.page.locator("#power").bounding_box()
        tab.page.mouse.move(tab.x(6.0), box["y"] + 30)
        assert re.search(r"mean\s+80.0 °C", tab.page.locator("#card").inner_text())
        tab.page.wait_for_function("() => location.hash.includes('tracks=1')")


def test_without_a_meter_the_page_works_in_seconds(tab):
    with view(replace(recording(), signals=(), devices=(), topology=())) as page:
        tab.open(page.url)
        rows = tab.page.locator(".frames tbody").inner_text()
        assert "MPI_Waitall" in rows
        assert "10.0 s" in rows  # two ranks, 5 s each
        assert tab.page.locator("#sum").inner_text() == "28.0 s"  # two of 10 s, and 8 s of kernels
        tab.brush(4.0, 9.0)
        assert tab.page.locator("#sum").inner_text() not in ("28.0 s", "–")
        tab.page.select_option("#by", "process")
        tab.settle()
        assert "MPI Rank 1" in tab.page.locator(".frames tbody").inner_text()
        tab.page.keyboard.press("Escape")
        tab.tab("flame")
        totals = tab.page.evaluate("wattribute.tab.data.groups.map((group) => [group.label, group.nodes[0][3]])")
        assert ["threads · host", pytest.approx(20.0)] in totals
        assert "20.0 s" in tab.page.locator("#panel").inner_text()
        tab.tab("heatmap")
        assert "self time of the" in tab.page.locator("#panel").inner_text()
        assert sum(cell["self_j"] for cell in tab.page.evaluate("wattribute.tab.data.cells")) == pytest.approx(28.0)


@pytest.fixture(scope="module")
def frontier(shared):
    """Many long names, 8 devices on two hosts, lanes of one name in both."""
    with view(shared / "traces" / "frontier-hpl-partial") as page:
        yield page.url


@pytest.mark.parametrize("width", [800, 1100, 1400, 1920])
def test_rows_and_devices_do_not_overlap(tab, frontier, width):
    tab.page.set_viewport_size({"width": width, "height": 900})
    tab.open(frontier)
    rows, books = (tab.page.locator(name).bounding_box() for name in (".frames", "table.books"))
    beside = books["x"] >= rows["x"] + rows["width"] - 0.5
    assert beside or books["y"] >= rows["y"] + rows["height"] - 0.5
    assert beside == (width >= 1400)
    names = [each.inner_text() for each in tab.page.locator(".frames tbody .link").all()[:8]]
    assert names[0].startswith("Cijk")
    assert names[0].endswith("WGM7")  # cut in the middle, not by the cell
    link, cell = (tab.page.locator(f".frames tbody {each}").first.bounding_box() for each in (".link", "td.name"))
    assert link["x"] + link["width"] <= cell["x"] + cell["width"]
    box = tab.page.locator("#books").bounding_box()
    bottom = box["y"] + box["height"] - 1  # its border
    for book in tab.page.locator("#books .book").all():  # a line of books is whole or not there at all
        each = book.bounding_box()
        assert each["y"] >= bottom or each["y"] + each["height"] <= bottom


@pytest.mark.parametrize("width", [390, 1400])
def test_a_heatmap_has_room_for_its_numbers_and_names(tab, frontier, width):
    tab.page.set_viewport_size({"width": width, "height": 900})
    tab.open(frontier).tab("heatmap")
    short = tab.page.evaluate("wattribute.tab.data.short")
    assert len(set(short)) == len(short) == 30
    assert tab.page.evaluate("wattribute.tab.wide") >= 44
    room = tab.page.evaluate("wattribute.tab.canvas.clientWidth - wattribute.tab.left - 30 * wattribute.tab.wide")
    assert room > 90  # for the last name
    assert tab.page.evaluate("document.scrollingElement.scrollWidth") <= width


def test_the_command_line_of_a_span_is_that_of_its_lane(tab, frontier):
    tab.open(frontier)
    lanes = tab.page.evaluate("wattribute.facts.lanes.filter((lane) => lane.name === 'HIP[0:1]')")
    assert len(lanes) == 2  # on two hosts
    tab.page.evaluate("lane => { wattribute.view.pick = [lane, 100]; wattribute.showPick(); }", lanes[1]["location"])
    tab.page.wait_for_selector("#pick:not([hidden])")
    text = tab.page.locator("#pick").inner_text()
    words = shlex.split(tab.page.locator("#pick pre").inner_text())
    done = subprocess.run(
        [sys.executable, "-m", *words, "--format", "json"], capture_output=True, text=True, check=True
    )
    rows = json.loads(done.stdout)["rows"]
    assert {row["location"] for row in rows} == {"MPI Rank 4/HIP[0:1]"}
    assert f"{max(row['total_j'] for row in rows):.6f} J" in text
    calls = tab.page.evaluate("wattribute.source.span(...wattribute.view.pick).then((span) => span.calls)")
    assert re.search(rf"calls of this frame in this lane\s+{calls:,}", text)


def test_groups_tracks_and_graphs_by_keyboard(tab, frontier):
    tab.open(frontier)
    for key in "jjo":  # the second header is the first process
        tab.page.keyboard.press(key)
    tab.settle()
    assert tab.page.evaluate("wattribute.lanes.rows[1].closed")
    tab.page.keyboard.press("o")
    tab.settle()
    assert not tab.page.evaluate("wattribute.lanes.rows[1].closed")
    first = tab.page.evaluate("wattribute.power.shown()")
    tab.page.keyboard.press("]")
    assert tab.page.evaluate("wattribute.power.shown()") != first
    tab.page.keyboard.press("[")
    assert tab.page.evaluate("wattribute.power.shown()") == first
    tab.tab("flame")
    tab.page.locator("#flame").focus()
    for key in ("ArrowUp", "ArrowRight"):
        tab.page.keyboard.press(key)
    assert re.search(r"energy, with callees\s+9.69 kJ \(", tab.page.locator("#card").inner_text())
    tab.page.keyboard.press("Enter")
    assert tab.page.evaluate("wattribute.tab.root") > 0
    tab.page.keyboard.press("Backspace")
    assert tab.page.evaluate("wattribute.tab.root") == 0
    tab.tab("heatmap")
    tab.page.locator("#heatmap").focus()
    for key in ("ArrowRight", "ArrowDown"):
        tab.page.keyboard.press(key)
    assert re.search(r"self energy\s+[\d.]+ kJ \(", tab.page.locator("#card").inner_text())
    tab.page.keyboard.press("Enter")
    assert tab.page.evaluate("wattribute.view.search").startswith("Cijk")
    tab.settle()


def test_numbers_read_as_in_python(tab, served):
    tab.open(served)
    values = [0, 1842.5, -3.2e-7, 999.9, 0.0012345, 12345678, 1e16, 0.1, 97.25, math.nextafter(51.25, 0)]
    script = "values => import('wattribute/format.js').then((module) => values.map((value) => module.si(value, 'J')))"
    assert tab.page.evaluate(script, values) == [numbers.si(value, "J") for value in values]
    script = "([v, l, h]) => import('wattribute/format.js').then((module) => module.bounded(v, l, h))"
    for case in (
        [6.5, 5.6, 7.4],
        [0.2, 0.0, 1.6],
        [1842.5, 1842.4, 1842.6],
        [1126.0, 1086.0, 1232.0],
        [0.0, 0.0, 9.0],
        [0.7, 0.1, 1670.0],
    ):
        assert tab.page.evaluate(script, case) == numbers.bounded(*case)
