"""Grams by hand, for every rule."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wattribute.carbon import Site, World, check, emissions
from wattribute.carbon.cache import Cache
from wattribute.carbon.grams import of_curve
from wattribute.errors import NoDataError, NotFoundError, OptionError

OFFLINE = World(cache=Cache.__new__(Cache), offline=True, zone=None)
HOUR = 3600 * 10**9
KWH = ([10**18, 10**18 + HOUR], [0.0, 3.6e6])


def test_no_zone_is_the_world_average_and_says_so():
    result = emissions(KWH, outside=OFFLINE)
    assert result.assumed
    assert result.zone == "WORLD"
    assert result.co2e_g == pytest.approx(472.94)
    assert result.low_g < 50
    assert result.high_g > 700
    assert result.low_g < result.co2e_g < result.high_g
    assert result.sources == ("Ember, Yearly Electricity Data (2025 edition), 2024, World average",)
    assert result.licences == ("CC BY 4.0",)


def test_a_named_zone():
    result = emissions(KWH, zone="France", outside=OFFLINE)
    assert (result.assumed, result.fallback, result.zone) == (False, False, "FR")
    assert result.co2e_g == pytest.approx(44.18)
    assert result.low_g is None


def test_the_environment_may_name_the_zone(monkeypatch):
    monkeypatch.setenv("WATTRIBUTE_ZONE", "FR")
    result = emissions(KWH, outside=World(offline=True))
    assert (result.zone, result.assumed) == ("FR", False)


def test_cooling_price_water_hardware():
    site = Site(pue=1.5, price=0.30, currency="EUR", embodied_kg=1461, lifetime_years=4, embodied_share=0.5,
                wue_l_per_kwh=1.8, grid_water_l_per_kwh=2.0)  # fmt: skip
    result = emissions(KWH, intensity=100, site=site, outside=OFFLINE)
    assert result.co2e_g == pytest.approx(150)  # 1 kWh × 1.5 × 100
    assert result.g_per_kwh == pytest.approx(100)
    assert result.cost == pytest.approx(0.45)  # 1 kWh × 1.5 × 0.30
    assert result.water_l == pytest.approx(1.8 + 1.5 * 2.0)
    # 1,461 kg over 4 years = 35,064 h: 41.667 g an hour, half of it ours
    assert result.embodied_g == pytest.approx(1461e3 / 35_064 / 2)
    assert result.total_g == pytest.approx(150 + 1461e3 / 35_064 / 2)
    bare = emissions(KWH, intensity="100", outside=OFFLINE)
    assert (bare.cost, bare.water_l, bare.embodied_g, bare.total_g) == (None, None, None, pytest.approx(100))


@pytest.mark.parametrize("wrong", [{"pue": 0.9}, {"pue": float("nan")}, {"price": -1}, {"embodied_share": 2},
                                   {"lifetime_years": 0}, {"embodied_kg": float("inf")}])  # fmt: skip
def test_a_site_that_cannot_be(wrong):
    with pytest.raises(OptionError, match=r"impossible|cannot be"):
        Site(**wrong)


@given(
    st.lists(st.tuples(st.integers(0, 10**9), st.floats(0, 1e6)), min_size=1, max_size=20),
    st.lists(st.tuples(st.integers(1, 5 * 10**8), st.floats(0, 900)), min_size=1, max_size=6),
)
def test_slices_add_up_to_the_energy(tmp_path_factory, points, steps):
    """Whatever the steps, no joule is lost or counted twice."""
    times = 1_700_000_000_000_000_000 + np.cumsum([gap for gap, _ in points])
    energy = np.cumsum([joules for _, joules in points])
    table = tmp_path_factory.mktemp("table") / "grid.csv"
    at, lines = int(times[0]), ["start_ns,g_per_kwh"]
    for length, figure in steps:
        lines.append(f"{at},{figure}")
        at += length
    table.write_text("\n".join(lines))
    result = of_curve(times, energy, intensity=str(table), outside=OFFLINE)
    used = energy[-1] - energy[0]
    assert sum(part.energy_j for part in result.slices) == pytest.approx(used, rel=1e-9, abs=1e-6)
    assert result.co2e_g == pytest.approx(sum(p.energy_j * p.g_per_kwh / 3.6e6 for p in result.slices), rel=1e-12)


def test_a_table_by_the_hour(tmp_path):
    table = tmp_path / "g.csv"
    table.write_text("time,g_per_kwh\n2001-09-09T01:00Z,100\n2001-09-09T02:00Z,300\n")
    # 10^18 ns is 2001-09-09T01:46:40Z: 800 s at 100, then 2,800 s at 300
    result = emissions(KWH, intensity=str(table), outside=OFFLINE)
    assert result.co2e_g == pytest.approx((800 * 100 + 2800 * 300) / 3600)
    assert result.sources == ("table g.csv",)


def test_without_a_wall_clock_only_yearly_figures_hold(tmp_path):
    table = tmp_path / "g.csv"
    table.write_text("time,g_per_kwh\n2001-09-09T01:00Z,100\n")
    result = of_curve(*KWH, zone="FR", intensity=str(table), wall_clock=False, outside=OFFLINE)
    assert result.co2e_g == pytest.approx(44.18)
    assert result.fallback
    assert "give --start" in result.problems[0]


def test_no_time_and_no_energy():
    still = emissions(([5, 5], [1.0, 1.0]), zone="FR", outside=OFFLINE)
    assert (still.energy_j, still.co2e_g, still.g_per_kwh) == (0.0, 0.0, 44.18)
    with pytest.raises(NoDataError):
        emissions(([], []), outside=OFFLINE)
    with pytest.raises(NoDataError, match="order"):
        emissions(([2, 1], [0.0, 1.0]), outside=OFFLINE)
    with pytest.raises(NoDataError, match="finite"):
        emissions(([1, 2], [0.0, float("nan")]), outside=OFFLINE)


def test_checking_before_a_run(monkeypatch):
    assert check("FR").code == "FR"
    assert check(None) is None
    monkeypatch.setenv("WATTRIBUTE_ZONE", "Atlantis")
    with pytest.raises(OptionError, match="unknown zone"):
        check()
    monkeypatch.delenv("WATTRIBUTE_ZONE")
    with pytest.raises(OptionError, match="unknown zone"):
        check("Atlantis")
    with pytest.raises(OptionError, match="did you mean 'yearly'"):
        check("FR", "yearl")
    with pytest.raises(OptionError, match=r"impossible|cannot be"):
        check("FR", "-3")
    with pytest.raises(NotFoundError):
        check("FR", "nowhere.csv")


def test_everything_goes_into_json():
    import json

    plain = json.loads(json.dumps(emissions(KWH, outside=OFFLINE).as_dict()))
    assert plain["assumed"] is True
    assert plain["slices"][0]["g_per_kwh"] == 472.94
