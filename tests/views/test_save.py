"""Charts as files."""

from tests.views.stories import streams
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
