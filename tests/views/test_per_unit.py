"""Energy per unit of work in charts, reports and tables."""

import numpy as np
import pytest

import wattribute
from wattribute.model import Signal, Summary, counts
from wattribute.testing.recordings import RecordingBuilder
from wattribute.views.per_unit import line_per_unit, row_per_unit


@pytest.fixture
def recording():
    made = RecordingBuilder(10, name="served").thread("prefill 0..40, decode 40..100")
    tokens = Signal("tokens", "delta", counts.UNIT, np.array([20, 70]), np.array([80.0, 20.0]), location=0)
    return made.counter("package 0", np.linspace(0, 100, 101)).signals(tokens).recording()


def test_the_line_of_a_run(recording):
    found = wattribute.attribute(recording, by="frame", per="tokens")
    assert line_per_unit(found) == "per tokens: 1.00 J measured, idle included (100 counted)"
    assert line_per_unit(wattribute.attribute(recording, by="frame")) == ""
    rows = {row["frame"]: row for row in found.rows.to_dicts()}
    device = {"estimated": False, "gain_error": None}
    assert row_per_unit(rows["decode"], device, "j", "J") == "3.00 J"  # 60 J over 20
    estimated = rows["decode"] | {"j_per_unit_low": None, "j_per_unit_high": None}
    assert row_per_unit(estimated, {"estimated": True, "gain_error": 0.5}, "j", "J") == "3.00 J ± 1.5"


def test_charts_say_it_in_their_caption(recording):
    chart = wattribute.plot.books(wattribute.attribute(recording, per="tokens"))
    assert "Per tokens: 1.00 J measured, idle included (100 counted)." in chart.to_json()


def test_reports_have_it_in_numbers_and_rows(recording, tmp_path):
    wattribute.write_report(recording, tmp_path / "report.md", per="tokens", zone="FR")
    text = (tmp_path / "report.md").read_text()
    assert "| per tokens |" in text
    assert "total per tokens | CO₂e per tokens | time per tokens |" in text
    assert "3.00 J | 36.8 µg | 300 ms |" in text  # decode: 60 J over 20 at 44.18 g/kWh; 6 s over 20


def test_grams_stand_beside_joules(recording):
    found, _ = wattribute.carbon.with_emissions(
        wattribute.attribute(recording, by="frame", per="tokens"), intensity=360
    )
    assert line_per_unit(found) == "per tokens: 1.00 J measured, CO2e 100 µg, idle included (100 counted)"
    chart = wattribute.plot.carbon(wattribute.attribute(recording, per="tokens"), zone="FR")
    assert "Per tokens: 12.3 µg (100 counted)." in chart.to_json()  # 100 J at 44.18 g/kWh


def test_a_run_has_ranges_of_grams_too():
    carbon = {"co2e_low_g": 0.25, "co2e_high_g": 8.0}
    one = Summary(1.0, energy_j=10.0, low_j=5.0, high_j=20.0, co2e_g=2.0, carbon=carbon, counts={"tokens": 10}).per(
        "tokens"
    )
    assert (one.co2e_g, one.co2e_low_g, one.co2e_high_g) == pytest.approx((0.2, 0.025, 0.8))
    one = Summary(1.0, energy_j=10.0, co2e_g=2.0, counts={"tokens": 10}).per("tokens")
    assert (one.co2e_low_g, one.co2e_high_g) == (None, None)
