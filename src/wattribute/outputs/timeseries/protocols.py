"""Series → requests: the body and the path that each protocol needs. Encoding only.

Times of VictoriaMetrics and Prometheus are whole milliseconds, those of Influx and OTLP nanoseconds. The same points
always give the same bytes, so that what is sent twice is stored once.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from urllib.parse import quote, urlencode

from .openmetrics import MS, exposition
from .series import ENERGY, POWER, Labels, Metric, Series, chunks, points
from .target import Request, Target

MOST_POINTS = 5000  # in one request, as InfluxData advises
_LABELS = ("apart", "device", "estimated", "host", "kind", "run", "sensor", "zone")
_ESCAPED = str.maketrans({",": r"\,", "=": r"\=", " ": r"\ "})


Encoder = Callable[[Sequence[Series], Target], Iterator[tuple[str, str, str]]]  # gives (path, type, text)


def requests(series: Iterable[Series], target: Target) -> Iterator[Request]:
    """The requests that carry these series, in their order."""
    encode = _ENCODERS[target.protocol]
    for chunk in chunks(series, MOST_POINTS):
        for path, kind, text in encode(chunk, target):
            yield Request(path, kind, gzip.compress(text.encode(), 1, mtime=0), points(chunk))


# -------------------------------------------------------------------------------------------------- line protocol


def line_protocol(series: Iterable[Series], measurement: str = "wattribute", step_ns: int = 1) -> str:
    """A line per point: ``wattribute,device=GPU\\ 0,host=node1 power_watts=251.3 1700000000000000000``."""
    parts = []
    for each in series:
        parts.append(_lines(f"{measurement}{_tags(each.labels)} {each.metric.field}=", each, step_ns))
    return "".join(parts)


def milliwatts(series: Iterable[Series]) -> str:
    """Power as older dashboards of powermetrics want it: a measurement per kind of device, field ``power`` in mW."""
    parts = []
    for each in series:
        if each.metric is POWER:
            labels = dict(each.labels)
            measurement = labels.pop("kind", "other").upper().translate(_ESCAPED)
            lines = zip((each.values * 1e3).tolist(), each.times_ns.tolist(), strict=True)
            prefix = f"{measurement}{_tags(tuple(labels.items()))} power="
            parts.append("".join([f"{prefix}{value!r} {at}\n" for value, at in lines]))
    return "".join(parts)


def _lines(prefix: str, each: Series, step_ns: int) -> str:
    each = each.thinned(step_ns)
    pairs = zip(each.values.tolist(), (each.times_ns // step_ns).tolist(), strict=True)
    return "".join([f"{prefix}{value!r} {at}\n" for value, at in pairs])


def _tags(labels: Labels) -> str:
    return "".join(f",{name}={value.translate(_ESCAPED)}" for name, value in labels)


def line_protocol_pieces(series: Iterable[Series], options: Mapping[str, str]) -> Iterator[str]:
    """Lines in the schema that was asked for, a piece per request."""
    encode = milliwatts if options.get("schema") == "milliwatts" else line_protocol
    return (encode(chunk) for chunk in chunks(series, MOST_POINTS))


def _influx(series: Sequence[Series], target: Target) -> Iterator[tuple[str, str, str]]:
    query = {"db": target.path, "precision": "ns"} | ({"rp": target.options["rp"]} if "rp" in target.options else {})
    text = "".join(line_protocol_pieces(series, target.options))
    if text:
        yield f"/write?{urlencode(query)}", "text/plain; charset=utf-8", text


def _influx2(series: Sequence[Series], target: Target) -> Iterator[tuple[str, str, str]]:
    organisation, bucket = target.path.split("/")
    query = urlencode({"org": organisation, "bucket": bucket, "precision": "ns"})
    yield f"/api/v2/write?{query}", "text/plain; charset=utf-8", line_protocol(series)


# ------------------------------------------------------------------------------------------------- VictoriaMetrics


def _victoria(series: Sequence[Series], target: Target) -> Iterator[tuple[str, str, str]]:
    prefix, form = _prefix(target), target.options.get("format", "influx")
    if form == "csv":
        for metric, same in _by_metric(series):
            yield f"{prefix}/api/v1/import/csv?{urlencode({'format': csv_format(metric)})}", "text/csv", csv(same)
    elif form == "prometheus":
        yield f"{prefix}/api/v1/import/prometheus", "text/plain", exposition(series, openmetrics=False, times=True)
    else:  # a measurement and its field become one name: wattribute_energy_joules_total
        yield f"{prefix}/write?precision=ms", "text/plain; charset=utf-8", line_protocol(series, step_ns=MS)


def csv_format(metric: Metric) -> str:
    """Describe the columns of ``csv`` to VictoriaMetrics."""
    labels = [f"{number}:label:{name}" for number, name in enumerate(_LABELS, 1)]
    return ",".join(
        [*labels, f"{len(_LABELS) + 1}:time:unix_ms", f"{len(_LABELS) + 2}:metric:wattribute_{metric.field}"]
    )


def csv(series: Iterable[Series]) -> str:
    """Points of one metric as CSV, labels first; an empty label is none."""
    parts = []
    for each in series:
        labels = dict(each.labels)
        prefix = "".join(_quoted(labels.get(name, "")) + "," for name in _LABELS)
        thin = each.thinned(MS)
        pairs = zip((thin.times_ns // MS).tolist(), thin.values.tolist(), strict=True)
        parts.append("".join([f"{prefix}{at},{value!r}\n" for at, value in pairs]))
    return "".join(parts)


def _quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"' if any(letter in text for letter in ',"') else text


def _by_metric(series: Sequence[Series]) -> Iterator[tuple[Metric, list[Series]]]:
    ordered = sorted(series, key=lambda each: each.metric.name)
    for metric, same in groupby(ordered, key=lambda each: each.metric):
        yield metric, list(same)


def _prefix(target: Target) -> str:
    return f"/{quote(target.path)}" if target.path else ""


# ------------------------------------------------------------------------------------------------------------ OTLP


_HARDWARE = {"dram": "memory", "psys": "enclosure"}  # our kinds of devices → hw.type, where they differ


def otlp(series: Sequence[Series], names: str = "semconv") -> str:
    """An ExportMetricsServiceRequest as JSON, which OTLP/HTTP allows beside protobuf.

    64-bit integers are strings there; sums are cumulative since the run began. Energy and power have the names and
    attributes of OpenTelemetry's semantic conventions for hardware, or our own (``names="wattribute"``).
    """
    hosts: dict[str, list[Series]] = {}
    for before in series:
        each = _conventional(before) if names == "semconv" else before
        hosts.setdefault(dict(before.labels).get("host", ""), []).append(each)
    return _json(
        resourceMetrics=_list(
            _json(
                resource=_json(attributes=_attributes((("service.name", "wattribute"), ("host.name", host)))),
                scopeMetrics=_list(
                    [_json(scope='{"name":"wattribute"}', metrics=_list(map(_metric, _by_metric(same))))]
                ),
            )
            for host, same in hosts.items()
        )
    )


def _conventional(each: Series) -> Series:
    """Energy and power as the semantic conventions for hardware have them: a host's total apart from its parts."""
    labels = dict(each.labels)
    if each.metric not in (ENERGY, POWER):
        return each
    device, host, kind = labels.pop("device", ""), labels.pop("host", ""), labels.pop("kind", "")
    about = {f"wattribute.{name}": value for name, value in labels.items()}
    if kind == "node":
        metric = replace(each.metric, name=f"hw.host.{each.metric.name}")
        about |= {"hw.id": host or device, "hw.name": device}
    else:
        metric = replace(each.metric, name=f"hw.{each.metric.name}")
        place = f"{host}/" if host else ""
        about |= {"hw.id": f"{place}{device}", "hw.name": device}
        about["hw.parent"] = f"{place}{each.inside}" if each.inside else host
        about["hw.type"] = _HARDWARE.get(kind, kind)
    return replace(each, metric=metric, labels=tuple(sorted((k, v) for k, v in about.items() if v)))


def _metric(metric_and_series: tuple[Metric, Sequence[Series]]) -> str:
    metric, series = metric_and_series
    points = _list(filter(None, map(_points, series)))
    data = _json(gauge=_json(dataPoints=points))
    if metric.kind == "counter":
        data = _json(sum=_json(dataPoints=points, aggregationTemporality="2", isMonotonic="true"))  # 2: cumulative
    name = metric.name if metric.name.startswith("hw.") else f"wattribute.{metric.name}"
    named = {"name": name, "unit": metric.symbol, "description": metric.help}
    return json.dumps(named)[:-1] + "," + data[1:]


def _points(each: Series) -> str:
    """All points of a series, as text: there are thousands of them a second."""
    common = f'{{"attributes":{_attributes(each.labels)},'
    if each.metric.kind == "counter":
        common += f'"startTimeUnixNano":"{each.start_ns}",'
    pairs = zip(each.times_ns.tolist(), each.values.tolist(), strict=True)
    return ",".join([f'{common}"timeUnixNano":"{at}","asDouble":{value!r}}}' for at, value in pairs])


def _attributes(labels: Labels) -> str:
    return json.dumps([{"key": name, "value": {"stringValue": value}} for name, value in labels if value])


def _json(**parts: str) -> str:
    return "{" + ",".join(f'"{name}":{text}' for name, text in parts.items()) + "}"


def _list(parts: Iterable[str]) -> str:
    return f"[{','.join(parts)}]"


def _otlp(series: Sequence[Series], target: Target) -> Iterator[tuple[str, str, str]]:
    path = _prefix(target)
    path = path if path.endswith("/v1/metrics") else f"{path}/v1/metrics"
    yield path, "application/json", otlp(series, target.options.get("names", "semconv"))


_ENCODERS: dict[str, Encoder] = {"influx": _influx, "influx2": _influx2, "otlp": _otlp, "victoria": _victoria}
