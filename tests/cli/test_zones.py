"""``wattribute zones``."""

import json
import subprocess
import sys

import pytest


def zones(*arguments):
    command = [sys.executable, "-m", "wattribute", "zones", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_the_regions_of_great_britain():
    found = json.loads(zones("GB", "--format", "json"))
    assert [zone["name"] for zone in found if zone["code"] in ("GB", "GB-1", "GB-13")] == [
        "United Kingdom",
        "North Scotland",
        "London",
    ]
    assert len(found) == 18


def test_the_table_names_source_year_and_licence():
    line = next(line for line in zones("france").splitlines() if line.startswith("FR"))
    assert line.split() == ["FR", "France", "44", "2024", "lifecycle", "ember", "CC", "BY", "4.0"]


def test_a_place_that_is_not_known_is_said_and_an_empty_list_for_programs():
    assert json.loads(zones("atlantis", "--format", "json")) == []
    with pytest.raises(subprocess.CalledProcessError) as failed:
        zones("frnce")
    assert failed.value.returncode == 1
    assert failed.value.stderr.startswith("wattribute: unknown zone 'frnce'; did you mean 'France'")
