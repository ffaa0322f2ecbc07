"""Tables at 40, 80, 120 and 200 columns: no number and no unit is cut, no line is too long."""

import io
from dataclasses import replace
from itertools import pairwise

import polars as pl
import pytest
from rich.console import Group
from rich.text import Text

from tests.views.stories import HOSTILE, ranks, streams
from wattribute import attribute, compare, emissions
from wattribute.comparison import Ensemble, Run
from wattribute.comparison.repeats import Repeats
from wattribute.model import Attribution, DeviceSummary, Recording, Summary
from wattribute.recorders.daemon import Image
from wattribute.sessions.profile_table import function_table
from wattribute.views.console import attribution_tables
from wattribute.views.console_carbon import emissions_table, zone_table
from wattribute.views.console_compare import comparison_table
from wattribute.views.console_doctor import doctor_screen
from wattribute.views.console_frame import frame_table
from wattribute.views.console_images import image_table
from wattribute.views.console_info import info_tables
from wattribute.views.console_profile import _profile
from wattribute.views.console_regions import region_table
from wattribute.views.console_run import repeats_screen, run_screen
from wattribute.views.console_summary import summary_table
from wattribute.views.description import describe
from wattribute.views.fitted_table import FittedTable
from wattribute.views.regions import used
from wattribute.views.terminal import GAP, Console

WIDTHS = (40, 80, 120, 200)


def _summary() -> Summary:
    devices = [
        DeviceSummary("package 0", "cpu", 1234.5, 1100.0, 1300.0, mean_w=120.5, peak_w=250.4, causes=["update period"]),
        DeviceSummary("GPU 0", "gpu", 60.0, 0.0, 100.0, mean_w=60.0, gauges={"utilisation_percent": 37.0}),
    ]
    return Summary(10.0, ["x"], 0, energy_j=1294.5, low_j=1100.0, high_j=1400.0, mean_w=129.45, co2e_g=0.17,
                   devices=devices)  # fmt: skip


def _doctor() -> dict:
    sensor = {"unit": "W", "device": "package 0", "name": "power", "power_w": 123.4, "update_period_s": 0.001,
              "jitter_s": 0.0001, "state": "live", "estimated": False, "apart": "", "gain_error": 0.05}  # fmt: skip
    meter = {"meter": "rapl:/sys", "ok": True, "sensors": [sensor]}
    return {"meters": [meter], "findings": [], "core": "c", "versions": {"wattribute": "1"}}


def _experiment() -> dict:
    one = {"mean": 1.5e-5, "ci95_low": 1.4e-5, "ci95_high": 1.6e-5}
    names = ("duration_s", "energy_j", "energy_kwh", "co2e_kg", "co2e_g_per_s")
    return {"groups": [{"group": "batch=32", "n": 5, "estimated": True, **dict.fromkeys(names, one)}],
            "runs": 5, "counted": 5, "notes": [], "remarks": []}  # fmt: skip


def _functions(recording: Recording) -> tuple[Attribution, pl.DataFrame]:
    """Rows as the table of a profile has them; this recording knows no CPU time."""
    attribution = attribute(recording, by=("device", "frame", "file", "line"))
    return attribution, function_table(
        replace(attribution, rows=attribution.rows.with_columns(self_cpu_s=pl.lit(1.5), total_cpu_s=pl.lit(2.5)))
    )


def _memory() -> dict:
    return {"allocated": [{"frame": "a_long_name_of_a_function", "file": "/a/b.py", "line": 3, "bytes": 123456789,
                           "allocations": 12345}]}  # fmt: skip


def _tables(width: int) -> dict:
    from wattribute.carbon.places import zones

    recording, hostile = ranks(hosts=2), streams([*HOSTILE, "kernel"])
    changed = compare(Ensemble((Run("a", ranks()),)), Ensemble((Run("b", ranks(power_w=300.0)),)), by="frame")
    return {
        "frames": attribution_tables(attribute(recording), 20, width),
        "processes": attribution_tables(attribute(recording, by="process,location,frame", statistics=True), 20, width),
        "paths": attribution_tables(attribute(recording, by="path"), 20, width),
        "hostile": attribution_tables(attribute(hostile), 20, width),
        "info": info_tables(describe(recording)),
        "regions": region_table(used(recording)),
        "run": run_screen(_summary()),
        "repeats": repeats_screen(Repeats([_summary(), _summary()]), []),
        "experiment": summary_table(_experiment(), width),
        "compare": comparison_table(changed),
        "profile": _profile(*_functions(recording), None, _memory(), 20, "", width),
        "emissions": emissions_table(emissions(recording, zone="FR")),
        "sql": frame_table(
            attribute(recording, by="process,frame").rows.select("process", "frame", "self_j", "self_ns")
        ),
        "zones": zone_table(list(zones().values())[:30]),
        "doctor": doctor_screen(_doctor()),
        "images": image_table([Image("localhost/some/long/name/of/an/image", "abc123", 123456789, "")]),
    }


def _found(renderable):
    if isinstance(renderable, Group):
        return [table for part in renderable.renderables for table in _found(part)]
    return [renderable] if isinstance(renderable, FittedTable) else []


def _printed(renderable, width: int) -> str:
    out = io.StringIO()
    Console(file=out, width=width, no_color=True).print(renderable)
    return out.getvalue()


def _torn(text: str) -> list[str]:
    """The pairs of lines between which stand a number and its unit."""
    lines = [line.strip() for line in text.splitlines()]
    pairs = ((f"{one} {other}", len(one)) for one, other in pairwise(lines))
    return [pair for pair, at in pairs if GAP.match(pair, at)]


@pytest.mark.parametrize("width", WIDTHS)
def test_numbers_are_whole_at_any_width(width):
    seen = 0
    for name, shown in _tables(width).items():
        text = _printed(shown, width)
        assert max(map(len, text.splitlines())) <= width, name
        assert name == "hostile" or not _torn(text), name  # a hostile name may look like a unit
        for table in _found(shown):
            columns = table._kept(width) or table.columns
            text = _printed(table, width)
            for column in columns if width > 50 else table.columns:
                if column.justify == "right":
                    for cell in map(str, column.cells):
                        assert cell in text or cell in ("=", "+") or not cell.strip("░█ ▏▎▍▌▋▊▉"), (name, cell)
                        seen += 1
    assert seen > 100


def _small() -> FittedTable:
    table = FittedTable(drop=("calls", "power"))
    table.add_column("frame", no_wrap=True)
    table.add_column("")
    for name in ("self", "power", "calls"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_row("a_function_with_a_rather_long_name", "██████░░░░░░", "1.84 kJ ± 0.12", "389 W", "1,000")
    table.add_row("a_function_with_another_long_name", "█░░░░░░░░░░░", "84.0 J ± 0.12", "38 W", "3")
    return table


def test_bars_go_first_then_columns_then_letters():
    wide, no_bar, narrow = (_printed(_small(), width) for width in (100, 70, 54))
    assert "█" in wide
    assert "calls" in wide
    assert "█" not in no_bar
    assert "calls" in no_bar
    assert "a_function_with_a_rather_long_name" in no_bar
    assert "power" in narrow
    assert "calls" in narrow
    assert "…" in narrow
    table = _small()
    table.columns[2].header = "self, a column that is wide"
    narrow = _printed(table, 54)
    assert "calls" not in narrow
    assert "1.84 kJ ± 0.12" in narrow


def test_words_are_broken_only_where_a_table_is_too_narrow_for_them():
    table = FittedTable()
    table.add_column("signals")
    table.add_column("measure as")
    table.add_row("rocm_smi:::socket_power and 3 more", "a filter of which " + 20 * "much is said " + "here")
    assert "rocm_smi:::socket_power" in _printed(table, 60)
    assert max(map(len, _printed(table, 60).splitlines())) <= 60


def test_forty_columns_are_a_list():
    lines = _printed(_small(), 40).splitlines()
    assert lines[0] == "a_function_with_a_rather_long_name"
    assert lines[1] == "  self 1.84 kJ ± 0.12 · power 389 W"
    assert lines[2] == "  calls 1,000"


@pytest.mark.parametrize("width", range(20, 44))
def test_a_number_stays_with_its_unit(width):
    table = FittedTable()
    table.add_column("device")
    table.add_column("a heading of many words", justify="right")
    table.add_row("GPU 0", "≥ 1.10 kJ (1.29 kJ seen)")
    shown = Group(run_screen(_summary()), Text("81 % of 1,234 kWh, 3 min 20 s, 12.5 GiB, 40 °C", style="dim"), table)
    text = _printed(shown, width)
    assert not _torn(text)
    assert max(map(len, text.splitlines())) <= width
    assert "81 % of" in text
