"""The page in a real browser: what people see and do, served and as one file."""

import re
import shutil
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from tests.views.page.hand import HOSTILE, recording, start
from wattribute import attribute, save, view, write_page
from wattribute.model import Device, Signal
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
    package = Signal(
        "rapl:package-0", "counter", "J", np.array([0, 10000]), np.array([0, 1000]), Fraction(1), "node01", "package 0"
    )
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
        assert tab.page.evaluate(drawn) == [[0, "spans"], [2, "bins"], [1, "spans"]]
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
    other.goto(address)
    other.wait_for_selector("body[data-loaded]")
    process.kill()
    process.communicate()
    other.wait_for_selector("#banner:not([hidden])", timeout=10000)
    assert "server has stopped" in other.locator("#banner").inner_text()
    assert other.locator("#title").inner_text() == "simple-mi300"  # what is on screen stays
    other.close()
    tab.page.wait_for_selector("#banner:not([hidden])", timeout=10000)
    tab.complaints[:] = [text for text in tab.complaints if "net::ERR_" not in text]


def test_a_deleted_recording(tab, tmp_path):
    save(recording(), tmp_path / "run.watt")
    with view(tmp_path / "run.watt") as page:
        tab.open(page.url)
        shutil.rmtree(tmp_path / "run.watt")
        tab.page.wait_for_selector("#banner:not([hidden])", timeout=10000)
        assert "is not there any more" in tab.page.locator("#banner").inner_text()
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
        for _ in range(100):
            if tab.page.evaluate("wattribute.view.length") == 20000:
                break
            tab.page.wait_for_timeout(100)
        assert tab.page.evaluate("wattribute.view.length") == 20000
        assert "20.0 s" in tab.page.locator("#totals").inner_text()


def test_numbers_read_as_in_python(tab, served):
    tab.open(served)
    values = [0, 1842.5, -3.2e-7, 999.9, 0.0012345, 12345678, 1e16, 0.1]
    script = "values => import('wattribute/format.js').then((module) => values.map((value) => module.si(value, 'J')))"
    assert tab.page.evaluate(script, values) == [numbers.si(value, "J") for value in values]
    script = "([v, l, h]) => import('wattribute/format.js').then((module) => module.bounded(v, l, h))"
    for case in ([6.5, 5.6, 7.4], [0.2, 0.0, 1.6], [1842.5, 1842.4, 1842.6]):
        assert tab.page.evaluate(script, case) == numbers.bounded(*case)
