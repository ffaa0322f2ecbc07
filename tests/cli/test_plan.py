"""``wattribute plan``: the greenest start, from a table of one's own."""

import json
from datetime import datetime, timedelta, timezone
from functools import partial

import pytest


@pytest.fixture
def plan(command):
    return partial(command, "plan")


@pytest.fixture
def forecast(tmp_path):
    """400 g/kWh for three hours from now, then 100 for one, then 300."""
    now = datetime.now(timezone.utc).replace(microsecond=0)
    path = tmp_path / "forecast.csv"
    rows = [(now - timedelta(hours=1), 400), (now + timedelta(hours=3), 100), (now + timedelta(hours=4), 300)]
    rows.append((now + timedelta(hours=24), 300))
    path.write_text("time,intensity\n" + "".join(f"{at.isoformat()},{figure}\n" for at, figure in rows))
    return path, now


def test_the_start_in_json_and_in_words(plan, forecast):
    path, now = forecast
    done = plan("1h", "--intensity", path, "--within", "12h", "--format", "json")
    assert done.returncode == 0, done.stderr
    best = json.loads(done.stdout)
    assert datetime.fromisoformat(best["start"]) == now + timedelta(hours=3)
    assert (best["g_per_kwh"], best["now_g_per_kwh"], best["saved"]) == (100, 400, 0.75)
    assert "75 % less than now (400 g/kWh)" in plan("60min", "--intensity", path, "--within", "12h").stdout


def test_what_is_no_time(plan, forecast):
    done = plan("soon", "--intensity", forecast[0])
    assert done.returncode == 1
    assert "soon: give a time such as 90min or 2h" in done.stderr
