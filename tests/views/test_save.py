"""Charts as files."""

import pytest

from tests.views.stories import ranks, streams
from wattribute.files import user_folder
from wattribute.views import plot, save


def test_pictures_appear_whole_or_not_at_all(tmp_path):
    target = tmp_path / "chart.svg"
    target.write_text("old")
    plot.save(plot.draw("books", [streams(["a"])]), target)
    assert target.read_text().startswith("<svg")
    assert [path.name for path in tmp_path.iterdir()] == ["chart.svg"]


def test_still_pictures_carry_no_hover_cards():
    chart = plot.draw("power", [streams(["a"])])
    still = save.still(chart.to_json())
    assert "tooltip" in chart.to_json()
    assert "tooltip" not in str(still["vconcat"])


def units(view):
    return [unit for part in view["layer"] for unit in units(part)] if "layer" in view else [view]


@pytest.mark.parametrize("kind", ["timeline", "power", "node"])
def test_the_wheel_moves_all_views_of_a_page_along_time(kind):
    spec = plot.draw(kind, [ranks(hosts=2, depth=3)]).to_json()
    whole = save.zoomable(spec)
    (zoom,) = whole["params"]
    assert (zoom["bind"], zoom["select"]) == ("scales", {"type": "interval", "encodings": ["x"]})
    moved = [part for part in whole["vconcat"] if {unit.get("name") for unit in units(part)} & set(zoom["views"])]
    assert len(moved) == len(zoom["views"]) > 0
    for unit in (unit for part in moved for unit in units(part)):
        # what has a place in time is cut at the edges, the words beside are not
        assert unit["mark"]["clip"] == ("field" in unit["encoding"].get("x", {}))
    save.convert().vegalite_to_vega(whole)
    assert "params" not in save.still(spec)


def test_a_chart_without_time_has_no_zoom():
    assert "params" not in save.zoomable(plot.draw("heatmap", [ranks(hosts=2, depth=3)]).to_json())


def test_who_has_no_home_has_no_cache(monkeypatch):
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr("os.path.expanduser", lambda path: path)  # as where neither HOME nor the system names one
    with pytest.raises(NotADirectoryError):
        user_folder("CACHE", "charts").mkdir(parents=True)


def test_the_script_of_pages_is_made_once_and_a_cache_that_cannot_be_written_is_none(tmp_path, monkeypatch):
    def script(cache):
        monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
        save._bundle.cache_clear()
        return save._bundle()

    made = []
    monkeypatch.setattr(save.convert(), "javascript_bundle", lambda snippet: made.append(snippet) or f"{len(made)}é")
    try:
        assert [script(tmp_path), script(tmp_path)] == ["1é", "1é"]
        (tmp_path / "file").touch()
        assert [script(tmp_path / "file"), script(tmp_path / "file")] == ["2é", "3é"]
    finally:
        save._bundle.cache_clear()
