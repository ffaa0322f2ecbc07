"""``wattribute zones``."""

import json
from functools import partial

import pytest


@pytest.fixture
def zones(command):
    return partial(command, "zones")


def test_the_regions_of_great_britain(zones):
    found = json.loads(zones("GB", "--format", "json").stdout)
    assert [zone["name"] for zone in found if zone["code"] in ("GB", "GB-1", "GB-13")] == [
        "United Kingdom",
        "North Scotland",
        "London",
    ]
    assert len(found) == 18


def test_the_table_names_source_year_and_licence(zones):
    line = next(line for line in zones("france").stdout.splitlines() if line.startswith("FR"))
    assert line.split() == ["FR", "France", "44", "2024", "lifecycle", "ember", "CC", "BY", "4.0"]


def test_a_place_that_is_not_known_is_said_and_an_empty_list_for_programs(zones):
    assert json.loads(zones("atlantis", "--format", "json").stdout) == []
    failed = zones("frnce")
    assert failed.returncode == 1
    assert failed.stderr.startswith("wattribute: unknown zone 'frnce'; did you mean 'France'")
