"""Writes dashboards/*.json for Grafana and InfluxDB 2 from the one description below; ``--check`` says which are old.

A panel is described once: which metric, of which series, summed over which labels. Three dialects make queries of it:
PromQL (VictoriaMetrics and Prometheus), InfluxQL (InfluxDB 1.x) and Flux (InfluxDB 2.x). Tests run every query.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

FOLDER = Path(__file__).parent.parent / "dashboards"
VARIABLES = ("host", "run", "device")
LOOK_BACK = "1m"  # how old the last reading may be to be "now"


@dataclass(frozen=True)
class Panel:
    """What one panel shows. ``how``: "history" is a line per series over time; "now" the last reading of the last
    minute; "last" the last reading in the time shown (of a counter: the energy of a run)."""

    title: str
    kind: str  # of Grafana: timeseries, gauge, stat, bargauge, table
    metric: str  # the field in Influx, and with "wattribute_" in front the name in Prometheus
    unit: str  # of Grafana
    how: str
    by: tuple[str, ...]  # () sums over all that may be added up
    width: int
    height: int = 8
    help: str = ""


ENERGY, POWER = "energy_joules_total", "power_watts"
EACH = ("host", "device", "run")
PANELS = (
    Panel("Power now", "gauge", POWER, "watt", "now", (), 6, 6, "All devices that may be added up."),
    Panel("Power of each device now", "bargauge", POWER, "watt", "now", ("host", "device"), 9, 6),
    Panel("Energy", "stat", ENERGY, "joule", "last", (), 9, 6, "Of the runs and devices chosen above, each run whole."),
    Panel("Power", "timeseries", POWER, "watt", "history", EACH, 24, 9),
    Panel("Energy since the run began", "timeseries", ENERGY, "joule", "history", EACH, 12),
    Panel("Energy of each device", "bargauge", ENERGY, "joule", "last", ("host", "device"), 12),
    Panel("Energy of each run", "table", ENERGY, "joule", "last", ("run",), 12),
    Panel("Temperature", "timeseries", "temperature_celsius", "celsius", "history", (*EACH, "sensor"), 12),
    Panel("Utilisation", "timeseries", "utilisation_ratio", "percentunit", "history", (*EACH, "sensor"), 8),
    Panel("Memory", "timeseries", "memory_bytes", "bytes", "history", (*EACH, "sensor"), 8),
    Panel("Clock", "timeseries", "clock_hertz", "hertz", "history", (*EACH, "sensor"), 8),
)


class Dialect(Protocol):
    """How one kind of data source is asked."""

    name: str
    title: str
    source: str  # Grafana's type of data source

    def query(self, panel: Panel) -> dict[str, Any]:
        """The query of a panel, as Grafana stores it."""
        ...

    def values(self, label: str) -> Any:
        """The query for the values of a label, for the lists on top."""
        ...


def summed(panel: Panel) -> bool:
    """Whether devices are added up; those that another one contains are then left out."""
    return "device" not in panel.by


class PromQL:
    name, title, source = "prometheus", "wattribute (VictoriaMetrics, Prometheus)", "prometheus"

    def query(self, panel: Panel) -> dict[str, Any]:
        chosen = ",".join([*(f'{label}=~"${label}"' for label in VARIABLES), *(['apart=""'] if summed(panel) else [])])
        series = f"wattribute_{panel.metric}{{{chosen}}}"
        if panel.how != "history":
            series = f"last_over_time({series}[{LOOK_BACK if panel.how == 'now' else '$__range'}])"
        by = f" by ({', '.join(panel.by)})" if panel.by else ""
        text = series if panel.how == "history" else f"sum{by} ({series})"
        shape = {"instant": panel.how != "history", "range": panel.how == "history"}
        table = {"format": "table"} if panel.kind == "table" else {}
        return {"expr": text, "legendFormat": " ".join(f"{{{{{label}}}}}" for label in panel.by), **shape, **table}

    def values(self, label: str) -> Any:
        asked = f"label_values(wattribute_{ENERGY}, {label})"
        return {"query": asked, "refId": "values"}


class InfluxQL:
    name, title, source = "influxql", "wattribute (InfluxDB 1.x, InfluxQL)", "influxdb"

    def query(self, panel: Panel) -> dict[str, Any]:
        chosen = " AND ".join(
            [*(f'"{label}" =~ /^${label}$/' for label in VARIABLES), *(["\"apart\" = ''"] if summed(panel) else [])]
        )
        within = f"time > now() - {LOOK_BACK}" if panel.how == "now" else "$timeFilter"
        where = f'FROM "wattribute" WHERE {chosen} AND {within}'
        tags = ", ".join(f'"{label}"' for label in panel.by)
        if panel.how == "history":
            which = "last" if panel.metric == ENERGY else "mean"
            text = f'SELECT {which}("{panel.metric}") {where} GROUP BY time($__interval), {tags} fill(none)'
        else:
            inner = f'SELECT last("{panel.metric}") AS "value" {where} GROUP BY "host", "device", "run"'
            text = f'SELECT sum("value") AS "value" FROM ({inner})' + (f" GROUP BY {tags}" if tags else "")
        alias = " ".join(f"$tag_{label}" for label in panel.by)
        form = "table" if panel.kind == "table" else "time_series"
        return {"query": text, "rawQuery": True, "resultFormat": form, "alias": alias}

    def values(self, label: str) -> Any:
        return f'SHOW TAG VALUES FROM "wattribute" WITH KEY = "{label}"'


class Flux:
    name, title, source = "flux", "wattribute (InfluxDB 2.x, Flux)", "influxdb"

    def query(self, panel: Panel) -> dict[str, Any]:
        start = f"-{LOOK_BACK}" if panel.how == "now" else "v.timeRangeStart"
        chosen = " and ".join(f"r.{label} =~ /^${{{label}:regex}}$/" for label in VARIABLES)
        stages = [
            'from(bucket: "${bucket}")',
            f"range(start: {start}, stop: v.timeRangeStop)" if panel.how != "now" else f"range(start: {start})",
            f'filter(fn: (r) => r._measurement == "wattribute" and r._field == "{panel.metric}")',
            f"filter(fn: (r) => {chosen})",
            *(["filter(fn: (r) => not exists r.apart)"] if summed(panel) else []),
        ]
        columns = ", ".join(f'"{label}"' for label in panel.by)
        if panel.how == "history":
            which = "last" if panel.metric == ENERGY else "mean"
            stages += [f"aggregateWindow(every: v.windowPeriod, fn: {which}, createEmpty: false)"]
            stages += [f"group(columns: [{columns}])"]
        else:
            stages += ["last()", f"group(columns: [{columns}])", "sum()"]
        return {"query": "\n  |> ".join(stages)}

    def values(self, label: str) -> Any:
        return f'import "influxdata/influxdb/schema"\nschema.tagValues(bucket: "${{bucket}}", tag: "{label}")'


DIALECTS: tuple[Dialect, ...] = (PromQL(), InfluxQL(), Flux())


def dashboard(dialect: Dialect) -> dict[str, Any]:
    """One dashboard as Grafana imports it."""
    panels, x, y, row = [], 0, 0, 0
    for number, panel in enumerate(PANELS, 1):
        if x + panel.width > 24:
            x, y, row = 0, y + row, 0
        panels.append(_panel(dialect, panel, number, x, y))
        x, row = x + panel.width, max(row, panel.height)
    return {
        "uid": f"wattribute-{dialect.name}",
        "title": dialect.title,
        "tags": ["energy", "wattribute"],
        "description": "Made by tools/make_dashboards.py.",
        "schemaVersion": 39,
        "version": 1,
        "editable": True,
        "graphTooltip": 1,
        "refresh": "5s",
        "time": {"from": "now-15m", "to": "now"},
        "timezone": "browser",
        "templating": {"list": _variables(dialect)},
        "panels": panels,
    }


def _source(dialect: Dialect) -> dict[str, str]:
    return {"type": dialect.source, "uid": "${source}"}


def _panel(dialect: Dialect, panel: Panel, number: int, x: int, y: int) -> dict[str, Any]:
    options: dict[str, Any] = {"reduceOptions": {"calcs": ["lastNotNull"]}}
    custom: dict[str, Any] = {}
    if panel.kind == "timeseries":
        options = {"legend": {"displayMode": "table", "placement": "bottom", "calcs": ["lastNotNull", "max"]}}
        custom = {"fillOpacity": 10, "showPoints": "never", "lineInterpolation": "linear"}
    elif panel.kind == "table":
        options = {}
    elif panel.kind == "bargauge":
        options |= {"orientation": "horizontal", "displayMode": "basic"}
    return {
        "id": number,
        "title": panel.title,
        "description": panel.help,
        "type": panel.kind,
        "datasource": _source(dialect),
        "gridPos": {"x": x, "y": y, "w": panel.width, "h": panel.height},
        "targets": [{"refId": "A", "datasource": _source(dialect), **dialect.query(panel)}],
        "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0, "custom": custom}, "overrides": []},
        "options": options,
    }


def _variables(dialect: Dialect) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = [
        {"name": "source", "label": "Source", "type": "datasource", "query": dialect.source, "current": {}}
    ]
    if dialect.name == "flux":
        found.append({"name": "bucket", "label": "Bucket", "type": "textbox", "query": "wattribute",
                      "current": {"text": "wattribute", "value": "wattribute"}})  # fmt: skip
    for label in VARIABLES:
        found.append(
            {
                "name": label,
                "label": label.capitalize(),
                "type": "query",
                "datasource": _source(dialect),
                "query": dialect.values(label),
                "refresh": 2,  # whenever the time shown changes
                "sort": 2 if label == "run" else 1,
                "multi": True,
                "includeAll": True,
                "allValue": ".*" if dialect.name != "flux" else None,
                "current": {"text": ["All"], "value": ["$__all"]},
            }
        )
    return found


API = "influxdata.com/v2alpha1"
CELLS = {"timeseries": "Xy", "gauge": "Gauge", "stat": "Single_Stat", "bargauge": "Table", "table": "Table"}
SUFFIXES = {"watt": " W", "joule": " J", "celsius": " °C", "percentunit": "", "bytes": " B", "hertz": " Hz"}
COLOURS = {
    "Xy": [("scale", "Nineteen Eighty Four", "#31C0F6"), ("scale", "Nineteen Eighty Four", "#A500A5"),
           ("scale", "Nineteen Eighty Four", "#FF7E27")],
    "Gauge": [("min", "laser", "#00C9FF"), ("max", "comet", "#9394FF")],
    "Single_Stat": [("text", "laser", "#00C9FF")],
    "Table": [("text", "laser", "#00C9FF")],
}  # fmt: skip


def template() -> list[dict[str, Any]]:
    """The dashboard as ``influx apply`` takes it: InfluxDB 2 draws it without Grafana."""
    query = 'buckets() |> filter(fn: (r) => r.name !~ /^_/) |> rename(columns: {name: "_value"})'
    bucket = {"language": "flux", "type": "query", "query": query + ' |> keep(columns: ["_value"])', "name": "bucket"}
    charts, x, y, row = [], 0, 0, 0
    for panel in PANELS:
        width, height = panel.width // 2, panel.height // 2  # 12 columns here, 24 in Grafana
        if x + width > 12:
            x, y, row = 0, y + row, 0
        charts.append(_cell(panel) | {"xPos": x, "yPos": y, "width": width, "height": height})
        x, row = x + width, max(row, height)
    board = {"name": "wattribute", "description": "Made by tools/make_dashboards.py.", "charts": charts}
    return [
        {"apiVersion": API, "kind": "Variable", "metadata": {"name": "wattribute-bucket"}, "spec": bucket},
        {"apiVersion": API, "kind": "Dashboard", "metadata": {"name": "wattribute-board"}, "spec": board},
    ]


def _cell(panel: Panel) -> dict[str, Any]:
    kind = CELLS[panel.kind]
    query = Flux().query(panel)["query"].replace('"${bucket}"', "v.bucket")
    query = "\n".join(line for line in query.split("\n") if ":regex}" not in line)  # no lists to choose from here
    colours = [
        {"id": str(at), "type": what, "name": name, "hex": code, "value": 1000 * (what == "max")}
        for at, (what, name, code) in enumerate(COLOURS[kind])
    ]
    cell = {"kind": kind, "name": panel.title, "note": panel.help, "queries": [{"query": query}], "colors": colours}
    if kind == "Xy":
        axes = [{"name": "x", "base": "10", "scale": "linear"}, {"name": "y", "base": "10", "scale": "linear"}]
        axes[1]["suffix"] = SUFFIXES[panel.unit]
        return cell | {"geom": "line", "xCol": "_time", "yCol": "_value", "position": "overlaid", "axes": axes}
    if kind == "Table":
        return cell | {"tableOptions": {"verticalTimeAxis": True}, "decimalPlaces": 1}
    return cell | {"suffix": SUFFIXES[panel.unit], "decimalPlaces": 1}


def files() -> dict[Path, str]:
    """What there is to write."""
    boards = {
        FOLDER / f"wattribute-{dialect.name}.json": json.dumps(dashboard(dialect), indent=1) + "\n"
        for dialect in DIALECTS
    }
    text = json.dumps(template(), indent=1, ensure_ascii=False) + "\n"
    return boards | {FOLDER / "influxdb2-template.json": text}


if __name__ == "__main__":
    made = files()
    if "--check" in sys.argv:
        old = [path.name for path, text in made.items() if not path.exists() or path.read_text() != text]
        sys.exit(f"dashboards are old ({', '.join(old)}): run `make docs`" if old else 0)
    for path, text in made.items():
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
