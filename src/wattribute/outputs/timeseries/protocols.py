"""Series → requests: the bytes that each protocol wants, and where they are sent to. Encoding and nothing else.

Times of VictoriaMetrics and Prometheus are whole milliseconds, those of Influx and OTLP nanoseconds. The same points
always give the same bytes, so that what is sent twice is stored once.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from urllib.parse import quote, urlencode

from .openmetrics import MS, exposition
from .series import ENERGY, POWER, Labels, Metric, Series, chunks, points
from .target import Request, Target

MOST_POINTS = 5000  # in one request, as InfluxData advises
_LABELS = ("apart", "device", "estimated", "host", "kind", "run", "sensor", "zone")
_ESCAPED = str.maketrans({",": r"\,", "=": r"\=", " ": r"\ "})


Encoder = Callable[[Sequence[Series], Target], Iterator[tuple[str, str, str]]]  # gives (path, type, text)


def requests(told: Iterable[Series], target: Target) -> Iterator[Request]:
    """The requests that carry these series, in their order."""
    encode = _ENCODERS[target.protocol]
    for chunk in chunks(told, MOST_POINTS):
        for path, kind, text in encode(chunk, target):
            yield Request(path, kind, gzip.compress(text.encode(), 1, mtime=0), points(chunk))


# -------------------------------------------------------------------------------------------------- line protocol


def line_protocol(told: Iterable[Series], measurement: str = "wattribute", step_ns: int = 1) -> str:
    """A line per point: ``wattribute,device=GPU\\ 0,host=node1 power_watts=251.3 1700000000000000000``."""
    parts = []
    for each in told:
        parts.append(_lines(f"{measurement}{_tags(each.labels)} {each.metric.field}=", each, step_ns))
    return "".join(parts)


def milliwatts(told: Iterable[Series]) -> str:
    """Power as older dashboards of powermetrics want it: a measurement per kind of device, field ``power`` in mW."""
    parts = []
    for each in told:
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


def _influx(told: Sequence[Series], target: Target) -> Iterator[tuple[str, str, str]]:
    query = {"db": target.path, "precision": "ns"} | ({"rp": target.options["rp"]} if "rp" in target.options else {})
    text = milliwatts(told) if target.options.get("schema") == "milliwatts" else line_protocol(told)
    if text:
        yield f"/write?{urlencode(query)}", "text/plain; charset=utf-8", text


def _influx2(told: Sequence[Series], target: Target) -> Iterator[tuple[str, str, str]]:
    organisation, bucket = target.path.split("/")
    query = urlencode({"org": organisation, "bucket": bucket, "precision": "ns"})
    yield f"/api/v2/write?{query}", "text/plain; charset=utf-8", line_protocol(told)


# ------------------------------------------------------------------------------------------------- VictoriaMetrics


def _victoria(told: Sequence[Series], target: Target) -> Iterator[tuple[str, str, str]]:
    prefix, form = _prefix(target), target.options.get("format", "influx")
    if form == "csv":
        for metric, same in _by_metric(told):
            yield f"{prefix}/api/v1/import/csv?{urlencode({'format': csv_format(metric)})}", "text/csv", csv(same)
    elif form == "prometheus":
        yield f"{prefix}/api/v1/import/prometheus", "text/plain", exposition(told, openmetrics=False, times=True)
    else:  # a measurement and its field become one name: wattribute_energy_joules_total
        yield f"{prefix}/write?precision=ms", "text/plain; charset=utf-8", line_protocol(told, step_ns=MS)


def csv_format(metric: Metric) -> str:
    """Tells VictoriaMetrics what the columns of ``csv`` are."""
    labels = [f"{number}:label:{name}" for number, name in enumerate(_LABELS, 1)]
    return ",".join(
        [*labels, f"{len(_LABELS) + 1}:time:unix_ms", f"{len(_LABELS) + 2}:metric:wattribute_{metric.field}"]
    )


def csv(told: Iterable[Series]) -> str:
    """Points of one metric as CSV, labels first; an empty label is none."""
    parts = []
    for each in told:
        labels = dict(each.labels)
        prefix = "".join(_quoted(labels.get(name, "")) + "," for name in _LABELS)
        thin = each.thinned(MS)
        pairs = zip((thin.times_ns // MS).tolist(), thin.values.tolist(), strict=True)
        parts.append("".join([f"{prefix}{at},{value!r}\n" for at, value in pairs]))
    return "".join(parts)


def _quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"' if any(letter in text for letter in ',"') else text


def _by_metric(told: Sequence[Series]) -> Iterator[tuple[Metric, list[Series]]]:
    ordered = sorted(told, key=lambda each: each.metric.name)
    for metric, same in groupby(ordered, key=lambda each: each.metric):
        yield metric, list(same)


def _prefix(target: Target) -> str:
    return f"/{quote(target.path)}" if target.path else ""


# ------------------------------------------------------------------------------------------------------------ OTLP


def otlp(told: Sequence[Series]) -> str:
    """An ExportMetricsServiceRequest as JSON, which OTLP/HTTP allows beside protobuf.

    64-bit integers are strings there; sums are cumulative since the run began.
    """
    hosts: dict[str, list[Series]] = {}
    for each in told:
        hosts.setdefault(dict(each.labels).get("host", ""), []).append(each)
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


def _metric(metric_and_series: tuple[Metric, Sequence[Series]]) -> str:
    metric, told = metric_and_series
    points = _list(filter(None, map(_points, told)))
    data = _json(gauge=_json(dataPoints=points))
    if metric is ENERGY:
        data = _json(sum=_json(dataPoints=points, aggregationTemporality="2", isMonotonic="true"))  # 2: cumulative
    named = {"name": f"wattribute.{metric.name}", "unit": metric.symbol, "description": metric.help}
    return json.dumps(named)[:-1] + "," + data[1:]


def _points(each: Series) -> str:
    """All points of a series, as text: there are thousands of them a second."""
    common = f'{{"attributes":{_attributes(each.labels)},'
    if each.metric is ENERGY:
        common += f'"startTimeUnixNano":"{each.start_ns}",'
    pairs = zip(each.times_ns.tolist(), each.values.tolist(), strict=True)
    return ",".join([f'{common}"timeUnixNano":"{at}","asDouble":{value!r}}}' for at, value in pairs])


def _attributes(labels: Labels) -> str:
    return json.dumps([{"key": name, "value": {"stringValue": value}} for name, value in labels if value])


def _json(**parts: str) -> str:
    return "{" + ",".join(f'"{name}":{text}' for name, text in parts.items()) + "}"


def _list(parts: Iterable[str]) -> str:
    return f"[{','.join(parts)}]"


def _otlp(told: Sequence[Series], target: Target) -> Iterator[tuple[str, str, str]]:
    path = _prefix(target)
    path = path if path.endswith("/v1/metrics") else f"{path}/v1/metrics"
    yield path, "application/json", otlp(told)


_ENCODERS: dict[str, Encoder] = {"influx": _influx, "influx2": _influx2, "otlp": _otlp, "victoria": _victoria}
