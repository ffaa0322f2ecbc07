"""Zones: figures with their year, source and licence; names found however they are typed."""

import pytest

from wattribute.carbon.places import find, sources, world_spread, yearly, zones
from wattribute.errors import OptionError

GB_REGIONS = [
    "North Scotland",
    "South Scotland",
    "North West England",
    "North East England",
    "Yorkshire",
    "North Wales & Merseyside",
    "South Wales",
    "West Midlands",
    "East Midlands",
    "East England",
    "South West England",
    "South England",
    "London",
    "South East England",
    "England",
    "Scotland",
    "Wales",
]


def test_every_figure_has_a_year_a_source_and_a_licence():
    assert len(zones()) > 250
    for zone in zones().values():
        assert zone.source.title
        assert zone.source.licence
        figure = yearly(zone)
        assert figure.g_per_kwh is not None, zone
        assert 0 < figure.g_per_kwh < 1500, zone
        assert figure.year is not None, zone
        assert 2020 <= figure.year <= 2026, zone
        assert figure.basis in ("lifecycle", "direct")


@pytest.mark.parametrize("text", ["FR", "fr", "FRA", "France", " france "])
def test_a_country_by_code_or_name(text):
    assert find(text).code == "FR"


@pytest.mark.parametrize(
    ("text", "code"),
    [("UK", "GB"), ("GBR", "GB"), ("us-camx", "US-CAMX"), ("London", "GB-13"), ("NA", "NA"), ("gb-18", "GB"),
     ("world", "WORLD"), ("Quebec", "CA-QC")],
)  # fmt: skip
def test_other_names(text, code):
    assert find(text).code == code


def test_the_eighteen_regions_of_the_gb_api():
    regions = {zone.gb_region: zone.name for zone in zones().values() if zone.gb_region}
    assert [regions[i] for i in range(1, 18)] == GB_REGIONS
    assert find("GB").gb_region == 18
    assert yearly(find("GB-13")).code == "GB"


def test_sub_national_figures_differ_from_their_country():
    # eGRID2022, WECC California: (497.443 + 28 × 0.030 + 265 × 0.004) lb/MWh × 0.45359237 = 226.5 g/kWh
    assert find("US-CAMX").g_per_kwh == pytest.approx((497.443 + 28 * 0.030 + 265 * 0.004) * 0.45359237, abs=0.05)
    assert find("CA-QC").g_per_kwh < find("CA").g_per_kwh < find("CA-AB").g_per_kwh


def test_an_unknown_zone_says_what_to_do():
    with pytest.raises(OptionError, match="did you mean 'France'"):
        find("Frence")
    with pytest.raises(OptionError, match="wattribute zones"):
        find("$$$$$")


def test_the_spread_of_the_world():
    low, high = world_spread()
    figures = sorted(z.g_per_kwh for z in zones().values() if z.alpha3 and z.g_per_kwh is not None)
    assert low < find("WORLD").g_per_kwh < high
    inside = sum(low <= figure <= high for figure in figures) / len(figures)
    assert inside == pytest.approx(0.9, abs=0.02)
    assert set(sources()) == {"ember", "egrid", "nga", "cer", "neso", "electricitymaps"}
