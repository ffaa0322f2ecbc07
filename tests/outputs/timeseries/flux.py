"""Flux, as much of it as our dashboards use: a strict parser and an evaluator over points that were written.

No InfluxDB 2.x is in Debian, so their queries run here. Whatever is not understood is an error.
"""

import re
from statistics import fmean

_CALL = re.compile(r"(\w+)\((.*)\)", re.S)
_AND = re.compile(r"\s+and\s+")
_PARTS = {
    "from": r'bucket: "(?P<bucket>[^"]+)"',
    "range": r"start: (?P<start>-\d+[smh]|\d+)(, stop: (?P<stop>\d+))?",
    "filter": r"fn: \(r\) => (?P<condition>.+)",
    "aggregateWindow": r"every: (?P<every>\d+)s, fn: (?P<fn>mean|last), createEmpty: false",
    "group": r'columns: \[(?P<columns>("\w+"(, "\w+")*)?)\]',
    "last": r"",
    "sum": r"",
}
_CONDITIONS = {
    r'r\.(\w+) == "([^"]*)"': lambda row, name, value: row.get(name) == value,
    r"r\.(\w+) =~ /(.*)/": lambda row, name, value: name in row and re.search(value, row[name]) is not None,
    r"not exists r\.(\w+)": lambda row, name: name not in row,
}


def evaluate(query, points, now_s):
    """Tables (rows that share their group) of {(measurement_field, labels, ns): value}."""
    stages = [_stage(text) for text in query.split("\n  |> ")]
    assert [name for name, _ in stages[:2]] == ["from", "range"], "a query starts with from and range"
    rows = [
        {"_measurement": name.partition("_")[0], "_field": name.partition("_")[2], "_time": at / 1e9, "_value": value}
        | dict(labels)
        for (name, labels, at), value in points.items()
    ]
    tables = _grouped(rows, sorted({key for row in rows for key in row} - {"_time", "_value"}))
    for name, given in stages[1:]:
        tables = [table for table in _APPLY[name](tables, given, now_s) if table]
    return tables


def _stage(text):
    call = _CALL.fullmatch(text)
    assert call, f"not a call: {text!r}"
    assert call[1] in _PARTS, f"unknown function {call[1]}"
    arguments = re.fullmatch(_PARTS[call[1]], call[2], re.S)
    assert arguments, f"{call[1]} does not take {call[2]!r}"
    return call[1], arguments.groupdict()


def _grouped(rows, columns):
    found = {}
    for row in rows:
        found.setdefault(tuple(row.get(name) for name in columns), []).append(row)
    return list(found.values())


def _range(tables, given, now_s):
    start = given["start"]
    seconds = {"s": 1, "m": 60, "h": 3600}
    low = now_s - int(start[1:-1]) * seconds[start[-1]] if start.startswith("-") else int(start)
    high = int(given["stop"]) if given["stop"] else now_s
    return [[row for row in table if low <= row["_time"] < high] for table in tables]


def _filter(tables, given, now_s):
    checks = []
    for part in _AND.split(given["condition"]):
        matches = [(re.fullmatch(pattern, part), check) for pattern, check in _CONDITIONS.items()]
        ((match, check),) = [(match, check) for match, check in matches if match]
        checks.append((check, match.groups()))
    return [[row for row in table if all(check(row, *words) for check, words in checks)] for table in tables]


def _window(tables, given, now_s):
    every, pick = int(given["every"]), {"mean": fmean, "last": lambda values: values[-1]}[given["fn"]]
    made = []
    for table in tables:
        ordered = sorted(table, key=lambda row: row["_time"])
        windows = _grouped([row | {"_window": row["_time"] // every} for row in ordered], ["_window"])
        made.append([rows[-1] | {"_value": pick([row["_value"] for row in rows])} for rows in windows])
    return made


def _group(tables, given, now_s):
    return _grouped([row for table in tables for row in table], re.findall(r"\w+", given["columns"]))


_APPLY = {
    "range": _range,
    "filter": _filter,
    "aggregateWindow": _window,
    "group": _group,
    "last": lambda tables, *_: [[max(table, key=lambda row: row["_time"])] for table in tables if table],
    "sum": lambda tables, *_: [[table[0] | {"_value": sum(row["_value"] for row in table)}] for table in tables],
}
