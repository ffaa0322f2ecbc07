"""The greenest window of a forecast."""

import pytest

from wattribute.carbon import World
from wattribute.carbon.cache import Cache
from wattribute.carbon.planning import plan
from wattribute.carbon.web import Web
from wattribute.errors import NoDataError, OptionError

from .conftest import ns

NOW = ns("2024-09-04T14:10")
FORECAST = {"14:00": 300, "14:30": 200, "15:00": 100, "15:30": 120, "16:00": 400, "16:30": 50}


@pytest.fixture
def forecast(grid, outside):
    grid.figures = {f"2024-09-04T{at}Z": figure for at, figure in FORECAST.items()}
    return outside


def test_an_hour_within_three(forecast):
    best = plan(3600, "GB-13", within_s=2.8 * 3600, now_ns=NOW, outside=forecast)
    # 15:00 to 16:00: (100 + 120) / 2; at once: 20 min of 300, 30 of 200, 10 of 100 = 13,000 / 60
    assert best.start_ns == ns("2024-09-04T15:00")
    assert best.g_per_kwh == pytest.approx(110)
    assert best.now_g_per_kwh == pytest.approx(13_000 / 60)
    assert best.saved == pytest.approx(1 - 110 / (13_000 / 60))


def test_a_short_run_takes_the_greenest_slot(forecast):
    best = plan(600, "GB-13", within_s=2.8 * 3600, now_ns=NOW, outside=forecast)
    assert best.start_ns == ns("2024-09-04T16:30")


def test_a_window_that_ends_on_an_edge(forecast):
    # 90 minutes: 15:00 to 16:30 would hold 30 min of 400; 14:30 to 16:00 is (200 + 100 + 120) / 3 = 140
    assert plan(5400, "GB-13", within_s=2.5 * 3600, now_ns=NOW, outside=forecast).g_per_kwh == pytest.approx(140)


def test_a_yearly_figure_cannot_plan(tmp_path):
    world = World(Web(), Cache(tmp_path), offline=True, zone=None)
    with pytest.raises(NoDataError, match="no forecast"):
        plan(3600, "FR", outside=world)
    with pytest.raises(NoDataError, match="offline"):
        plan(3600, "GB-13", outside=world)
    with pytest.raises(OptionError, match="does not fit"):
        plan(3600, "GB-13", within_s=60, outside=world)
