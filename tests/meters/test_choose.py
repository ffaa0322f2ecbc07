"""Which meters are used when none is named, and what becomes of those that cannot be."""

import pytest

from wattribute import meters as found
from wattribute.errors import MeterError


def test_a_meter_that_breaks_leaves_the_others(monkeypatch):
    def make(spec, clock, made=found.make):
        if spec == "rapl":
            raise RuntimeError("a plug-in's mistake")
        return made(spec, clock)

    monkeypatch.setattr(found, "make", make)
    ready, refused = found.choose(())
    assert "model" in [meter.name for meter in ready]
    assert [one.availability.reason for one in refused if one.name == "rapl"] == ["a plug-in's mistake"]
    with pytest.raises(MeterError, match="meter 'rapl' failed: a plug-in's mistake"):
        found.choose(["rapl"])
