"""Live sources against a local server that speaks their protocols: good, broken, slow, silent."""

import os
import time

import pytest

from wattribute.carbon import World, emissions
from wattribute.carbon.cache import Cache
from wattribute.carbon.web import Web, WebError
from wattribute.errors import OptionError

from .conftest import ns

THREE_SLOTS = {"2024-09-04T14:00Z": 100, "2024-09-04T14:30Z": 200, "2024-09-04T15:00Z": 400}
HALF_HOUR = 1800 * 10**9
T0 = ns("2024-09-04T14:00")
CURVE = ([T0, T0 + HALF_HOUR, T0 + 2 * HALF_HOUR, T0 + 3 * HALF_HOUR], [0.0, 3.6e6, 3.6e6 * 3, 3.6e6 * 3.5])


def test_three_slots_give_the_sliced_sum_not_the_mean(grid, outside):
    grid.figures = THREE_SLOTS
    result = emissions(CURVE, zone="London", outside=outside)
    # 1 kWh × 100 + 2 kWh × 200 + 0.5 kWh × 400 = 700 g; the mean would say 3.5 kWh × 233.3 = 816.7 g
    assert result.co2e_g == pytest.approx(700, rel=1e-12)
    assert [part.co2e_g for part in result.slices] == pytest.approx([100, 400, 200])
    assert result.g_per_kwh == pytest.approx(200)
    assert not result.fallback
    assert not result.problems
    assert grid.asked[0][0] == "/regional/intensity/2024-09-04T14:00Z/2024-09-04T15:30Z/regionid/13"
    assert result.sources == ("NESO Carbon Intensity API, regional forecast per half hour, London",)


def test_a_run_that_begins_and_ends_inside_a_slot(grid, outside):
    grid.figures = THREE_SLOTS
    at = T0 + HALF_HOUR // 2
    # 1 kWh evenly over 30 minutes: half in the slot of 100, half in that of 200
    result = emissions(([at, at + HALF_HOUR], [7.0, 3.6e6 + 7.0]), zone="GB-13", outside=outside)
    assert result.co2e_g == pytest.approx(150)
    assert result.energy_j == pytest.approx(3.6e6)


def test_a_recorded_forecast(grid, outside):
    """The earlier tool's own run: 237 g/kWh, 5.775e-05 kWh, 0.0136877 g."""
    grid.figures = {"2024-09-04T14:00Z": 237.0}
    begin, end = ns("2024-09-04T14:27:25"), ns("2024-09-04T14:27:48")
    joules = 5.775416666666667e-05 * 3.6e6
    result = emissions(([begin, end], [0.0, joules]), zone="GB-12", outside=outside)
    assert result.co2e_g == pytest.approx(0.0136877375, rel=1e-9)
    # and its README's: 0.0099273 kWh at 143 g/kWh
    constant = emissions(([begin, end], [0.0, 1.4196 / 143 * 3.6e6]), intensity=143, outside=outside)
    assert constant.co2e_g == pytest.approx(1.4196)


@pytest.mark.parametrize(
    "mode", ["500", "503", "429", "404", "garbage", "nonsense", "huge", "redirect", "slow", "silent"]
)
def test_a_broken_server_costs_little_and_is_marked(grid, outside, mode):
    grid.mode = mode
    begin = time.monotonic()
    result = emissions(CURVE, zone="GB-13", outside=outside)
    assert time.monotonic() - begin < 3 * outside.web.deadline_s
    assert result.energy_j == 3.6e6 * 3.5
    assert result.fallback
    # the yearly figure of the country: 3.5 kWh × 215.79
    assert result.co2e_g == pytest.approx(3.5 * 215.79)
    assert "gb could not be asked" in result.problems[0]
    assert "United Kingdom (215.79 g/kWh) instead" in result.problems[1]
    assert all("elsewhere" not in path for path, _ in grid.asked)  # a token would have gone there too


def test_no_server_at_all(monkeypatch, outside):
    monkeypatch.setenv("WATTRIBUTE_GB_URL", "http://127.0.0.1:9")
    result = emissions(CURVE, zone="GB", outside=outside)
    assert result.fallback
    assert result.co2e_g == pytest.approx(3.5 * 215.79)


def test_a_server_that_recovers_is_asked_again(grid, outside):
    grid.figures, grid.failures = THREE_SLOTS, 1
    assert emissions(CURVE, zone="GB-13", outside=outside).co2e_g == pytest.approx(700)
    assert len(grid.asked) == 2


def test_a_host_that_failed_is_left_in_peace(grid, outside):
    grid.mode = "500"
    emissions(CURVE, zone="GB-13", outside=outside)
    asked = len(grid.asked)
    emissions(CURVE, zone="GB-1", outside=outside)
    assert len(grid.asked) == asked


def test_missing_slots_are_filled_and_said(grid, outside):
    grid.figures = {start: figure for start, figure in THREE_SLOTS.items() if figure != 200}
    result = emissions(CURVE, zone="GB-13", outside=outside)
    assert result.co2e_g == pytest.approx(100 + 2 * 215.79 + 200)
    assert [part.fallback for part in result.slices] == [False, True, False]
    assert result.fallback
    assert "33.3% of the run" in result.problems[-1]


def test_the_cache_answers_when_the_network_does_not(grid, outside):
    grid.figures = THREE_SLOTS
    emissions(CURVE, zone="GB-13", outside=outside)
    asked = len(grid.asked)
    again = emissions(CURVE, zone="GB-13", outside=World(outside.web, outside.cache, offline=True, zone=None))
    assert again.co2e_g == pytest.approx(700)
    assert not again.fallback
    assert len(grid.asked) == asked


def test_an_old_forecast_is_used_only_when_nothing_better_can_be_had(grid, tmp_path):
    now = [T0]  # the slots lie in the future: forecasts
    world = World(Web(deadline_s=0.8, rest_s=0), Cache(tmp_path, now_ns=lambda: now[0]), offline=False, zone=None)
    grid.figures = THREE_SLOTS
    emissions(CURVE, zone="GB-13", outside=world)
    now[0] += 2 * 3600 * 10**9
    grid.figures = dict.fromkeys(THREE_SLOTS, 300)
    assert emissions(CURVE, zone="GB-13", outside=world).co2e_g == pytest.approx(3.5 * 300)  # asked anew
    assert emissions(CURVE, zone="GB-13", outside=world).co2e_g == pytest.approx(3.5 * 300)
    asked = len(grid.asked)
    emissions(CURVE, zone="GB-13", outside=world)
    assert len(grid.asked) == asked  # now final
    other = World(Web(deadline_s=0.8, rest_s=0), Cache(tmp_path / "b", now_ns=lambda: now[0]), offline=False, zone=None)
    now[0] = T0
    emissions(CURVE, zone="GB-13", outside=other)
    now[0] += 2 * 3600 * 10**9
    grid.mode = "500"
    stale = emissions(CURVE, zone="GB-13", outside=other)
    assert stale.co2e_g == pytest.approx(3.5 * 300)
    assert "older answers from the cache" in stale.problems[1]


def test_a_cache_that_cannot_be_used_is_no_cache(grid, tmp_path):
    grid.figures = THREE_SLOTS
    file = tmp_path / "file"
    file.write_text("not a folder")
    world = World(Web(deadline_s=2), Cache(file / "cache"), offline=False, zone=None)
    assert emissions(CURVE, zone="GB-13", outside=world).co2e_g == pytest.approx(700)
    good = World(Web(deadline_s=2), Cache(tmp_path / "c"), offline=False, zone=None)
    emissions(CURVE, zone="GB-13", outside=good)
    for path in (tmp_path / "c").rglob("*.json"):
        path.write_bytes(b"[[1,2]" + b"[" * 100_000)
    assert emissions(CURVE, zone="GB-13", outside=good).co2e_g == pytest.approx(700)
    assert not list((tmp_path / "c").rglob("*.tmp"))


def test_electricity_maps_hourly(grid, outside, monkeypatch):
    monkeypatch.setenv("ELECTRICITYMAPS_TOKEN", "past secret")
    grid.figures = {"2024-09-04T14:00:00.000Z": 100, "2024-09-04T15:00:00.000Z": 400}
    result = emissions(CURVE, zone="US-CAL-CISO", intensity="electricitymaps", outside=outside)
    # 1 + 2 kWh in the hour of 100, 0.5 kWh in the hour of 400
    assert result.co2e_g == pytest.approx(3 * 100 + 0.5 * 400)
    path, headers = grid.asked[0]
    assert path == (
        "/v3/carbon-intensity/past-range?zone=US-CAL-CISO&start=2024-09-04T14%3A00%3A00Z&end=2024-09-04T16%3A00%3A00Z"
    )
    assert {name.lower(): value for name, value in headers.items()}["auth-token"] == "past secret"
    assert "past secret" not in repr(result)


def test_electricity_maps_with_a_free_token(grid, outside, monkeypatch):
    monkeypatch.setenv("ELECTRICITYMAPS_TOKEN", "free")
    grid.figures = {"2024-09-04T14:00:00.000Z": 100, "2024-09-04T15:00:00.000Z": 400}
    result = emissions(CURVE, zone="Germany", intensity="electricitymaps", outside=outside)
    assert result.co2e_g == pytest.approx(500)
    assert grid.asked[-1][0] == "/v3/carbon-intensity/history?zone=DE"


def test_electricity_maps_falls_back_to_the_country(grid, outside, monkeypatch):
    monkeypatch.setenv("ELECTRICITYMAPS_TOKEN", "t")
    grid.mode = "500"
    result = emissions(CURVE, zone="US-CAL-CISO", intensity="electricitymaps", outside=outside)
    assert result.fallback
    assert result.co2e_g == pytest.approx(3.5 * 383.55)


def test_electricity_maps_needs_a_token_and_a_zone(outside, monkeypatch):
    monkeypatch.delenv("ELECTRICITYMAPS_TOKEN", raising=False)
    with pytest.raises(OptionError, match="set ELECTRICITYMAPS_TOKEN"):
        emissions(CURVE, zone="DE", intensity="electricitymaps", outside=outside)
    with pytest.raises(OptionError, match="needs a --zone"):
        emissions(CURVE, intensity="electricitymaps", outside=outside)
    with pytest.raises(OptionError, match="Great Britain only"):
        emissions(CURVE, zone="FR", intensity="gb", outside=outside)


def test_long_runs_are_asked_for_in_pieces_the_server_accepts(grid, outside):
    month = 30 * 86_400 * 10**9
    emissions(([T0, T0 + month], [0.0, 1.0]), zone="GB-13", outside=outside)
    spans = [path.split("/")[3:5] for path, _ in grid.asked]
    assert len(spans) == 3
    assert [low for low, _ in spans[1:]] == [high for _, high in spans[:-1]]


def test_back_off_doubles_and_honours_retry_after():
    slept, answers = [], [WebError("HTTP 503", 503), WebError("HTTP 429", 429, wait_s=2.0), b'{"ok": 1}']

    def get(url, headers, timeout_s):
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    web = Web(get=get, sleep=slept.append, deadline_s=10)
    assert web.json("http://somewhere/x") == {"ok": 1}
    assert slept == [0.25, 2.0]


def test_a_wait_beyond_the_deadline_is_not_waited():
    def get(url, headers, timeout_s):
        raise WebError("HTTP 429", 429, wait_s=3600)

    slept = []
    with pytest.raises(WebError, match="429"):
        Web(get=get, sleep=slept.append).json("http://somewhere/x")
    assert slept == []


def test_only_web_addresses_are_asked(tmp_path):
    secret = tmp_path / "secret.json"
    secret.write_text("{}")
    with pytest.raises(WebError, match="not a web address"):
        Web().json(f"file://{secret}")


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to become another user")
def test_another_user_with_a_home_that_cannot_be_written(grid):
    import subprocess
    import sys

    code = (
        "import os, urllib.request, urllib.error, http.client, encodings.idna\n"  # the interpreter may be root's alone
        "from wattribute.carbon import emissions, zones; zones(); os.setuid(65534)\n"
        f"print(emissions(({CURVE[0]}, {CURVE[1]}), zone='GB-13').co2e_g)"
    )
    grid.figures = THREE_SLOTS
    env = {**os.environ, "HOME": "/root", "XDG_CACHE_HOME": "/proc/none"}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert float(done.stdout) == pytest.approx(700)
