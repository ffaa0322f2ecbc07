"""The registry of charts: a file each, plug-ins beside them, and what each is drawn from."""

import re
from pathlib import Path

import pytest

import wattribute
from tests.views.stories import ranks, streams
from wattribute.errors import NoDataError, OptionError
from wattribute.plugins import NEEDS, Chart, chart
from wattribute.views import charts, plot

ROOT = Path(__file__).parents[3]
EVERY = {one.name: one for one in charts.every()}


def test_a_chart_is_a_file_of_its_own_name():
    folder = Path(charts.__file__).parent
    for name, one in EVERY.items():
        assert f'@chart("{name}"' in re.sub(r"\(\s+", "(", (folder / f"{name}.py").read_text())
        assert getattr(plot, name) is charts.get(name) is one
    declared = re.findall(r"^@chart\(\s*\"(\w+)\"", "\n".join(p.read_text() for p in folder.glob("*.py")), re.M)
    assert sorted(declared) == sorted(EVERY)


@pytest.mark.parametrize("one", EVERY.values(), ids=EVERY)
def test_a_chart_says_what_it_is(one):
    assert one.needs in NEEDS
    assert 10 < len(one.about) < 80
    assert one.draw.__doc__
    assert "theme" in one.looks


def test_an_unknown_chart_suggests_a_known_one():
    with pytest.raises(OptionError, match="unknown kind of chart 'heatmp'; did you mean 'heatmap'"):
        charts.get("heatmp")
    with pytest.raises(OptionError, match="unknown kind of chart 'canvas'"):  # a file there, but no chart
        charts.get("canvas")
    with pytest.raises(AttributeError, match="heatmp"):
        _ = plot.heatmp
    with pytest.raises(OptionError, match="unknown need of a chart"):
        chart("x", about="", needs="everything")


THEIRS = '''
from wattribute.plugins import chart

@chart("donut", about="a ring of devices", needs="{needs}", by=("device",))
def donut(source, *, theme="light", hole=0.5):
    """A ring."""
    import altair
    return altair.Chart({{"values": [{{"n": {count}, "hole": hole}}]}}).mark_point().encode(x="n:Q")
'''


@pytest.fixture
def plug_in(tmp_path, monkeypatch):
    """Installs a package with a chart in a folder of its own."""

    def install(needs="attribution", count="len(source.rows)"):
        (tmp_path / "ring_charts.py").write_text(THEIRS.format(needs=needs, count=count))
        info = tmp_path / "ring_charts-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text("Name: ring_charts\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(
            "[wattribute.charts]\ndonut = ring_charts:donut\nbooks = ring_charts:donut\nbroken = not_there\n"
            "odd = ring_charts\n"
        )
        monkeypatch.syspath_prepend(tmp_path)
        monkeypatch.delitem(__import__("sys").modules, "ring_charts", raising=False)

    return install


def test_a_chart_of_others_is_drawn_listed_and_written(plug_in, tmp_path):
    plug_in()
    assert "donut" in {one.name for one in charts.every()}
    drawn = plot.draw("donut", [streams(["a"])], looks={"hole": 0.25})
    assert drawn.to_dict()["datasets"].popitem()[1] == [{"n": 1, "hole": 0.25}]
    assert plot.write("donut", [streams(["a"])], tmp_path / "x.svg").read_text().startswith("<svg")
    assert charts.get("books") is EVERY["books"]  # ours keep their names
    with pytest.raises(OptionError, match=r"'odd' is not made with wattribute\.plugins\.chart"):
        charts.get("odd")
    with pytest.raises(OptionError, match="'broken' cannot be loaded"):
        charts.get("broken")


def test_the_command_line_lists_and_draws_charts_of_others(command, plug_in, tmp_path, monkeypatch):
    plug_in()
    wattribute.save(streams(["a"]), tmp_path / "run.watt")
    monkeypatch.setenv("COLUMNS", "200")
    said = " ".join(command("plot", "--help").stdout.split())
    for name, about in ({one.name: one.about for one in EVERY.values()} | {"donut": "a ring of devices"}).items():
        assert f"{name} {about}" in said
    done = command("plot", "donut", tmp_path / "run.watt", "-o", tmp_path / "donut.png")
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "donut.png").read_bytes().startswith(b"\x89PNG")


@pytest.fixture(scope="module")
def ensemble():
    return wattribute.Ensemble.of({"first": ranks(depth=1), "second": ranks(depth=1, power_w=400)}).attribute()


@pytest.mark.parametrize("one", EVERY.values(), ids=EVERY)
def test_a_chart_of_one_run_refuses_several(one, ensemble):
    if one.needs in ("attribution", "stacks", "signals"):
        with pytest.raises(OptionError, match=f"a chart of {one.name} shows one run, not 2"):
            one(ensemble)
        with pytest.raises(OptionError, match=r"is drawn from .*, not from str"):
            one("trace")


def test_a_chart_of_runs_takes_every_run_of_an_ensemble(ensemble):
    drawn = plot.runs(ensemble)
    sets = [rows for rows in drawn.to_dict()["datasets"].values() if rows and "number" in rows[0]]
    wanted = sorted(part.devices["measured_j"].sum() for part in ensemble.parts.values())
    assert sorted(row["energy_j"] for row in sets[0]) == pytest.approx(wanted)
    with pytest.raises(OptionError, match="at least one recording"):
        plot.runs([])


def test_stacks_are_those_of_host_threads_unless_the_user_says_otherwise():
    attribution = wattribute.attribute(ranks(depth=2))
    assert attribution.question.of == ()
    from wattribute.views.charts.tables import of_host_threads, with_stacks

    assert with_stacks(attribution, ("path",)).question.of == ("host",)
    kernels = wattribute.attribute(streams(["a"]))
    assert with_stacks(kernels, ("path",)).question.of == ()  # no host thread has spans
    asked = []

    def ask(**change):
        asked.append(change)
        if change:
            raise NoDataError("no")
        return kernels

    assert of_host_threads(ranks(depth=1), None, ask) is kernels
    assert asked == [{"of": "host"}, {}]  # nothing of host threads: as it was asked
    assert of_host_threads(ranks(depth=1), "kernels", ask) is kernels
    assert asked[2:] == [{}]


def test_the_gallery_shows_every_chart():
    page = (ROOT / "docs" / "gallery.md").read_text()
    for name, one in EVERY.items():
        assert f"\n## {name}\n" in page
        assert one.about[1:] in page  # the first letter is a capital there
    pictures = re.findall(r"\]\((gallery/[^)]+\.png)\)", page)
    for picture in pictures:
        assert (ROOT / "docs" / picture).is_file(), picture
    shown = {Path(picture).stem.partition("-")[0] for picture in pictures}
    assert set(EVERY) <= shown
    assert {path.name for path in (ROOT / "docs" / "gallery").iterdir()} == {Path(p).name for p in pictures}


def test_options_a_chart_does_not_have_are_refused():
    with pytest.raises(OptionError, match="a chart of heatmap has no zone; it has value, theme, top"):
        plot.draw("heatmap", [streams(["a"])], looks={"zone": "FR"})


def test_the_decorator_keeps_the_function():
    @chart("own", about="a chart of one's own", files={"txt": str})
    def own(attribution, *, theme="light"):
        return theme

    assert isinstance(own, Chart)
    assert own.looks == ["theme"]
    assert own(wattribute.attribute(streams(["a"])), theme="dark") == "dark"
