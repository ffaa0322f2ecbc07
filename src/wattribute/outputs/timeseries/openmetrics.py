"""Series as OpenMetrics text: a file for ``promtool tsdb create-blocks-from openmetrics``, or what a scraper reads.

Prometheus refuses samples of the past from everybody; blocks made of such a file are the way to show it an old run.
The older text format of Prometheus differs in the names of counters' families and in its times (milliseconds).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from .series import METRICS, Labels, Metric, Series

MS = 1_000_000
TYPES = {
    True: "application/openmetrics-text; version=1.0.0; charset=utf-8",
    False: "text/plain; version=0.0.4; charset=utf-8",
}
_ESCAPED = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})


def exposition(series: Iterable[Series], openmetrics: bool = True, times: bool = True) -> str:
    """All points in one text; without ``times`` only the last one of each series, as of now."""
    return "".join(pieces(list(series), openmetrics, times))


def pieces(series: list[Series], openmetrics: bool = True, times: bool = True) -> Iterator[str]:
    """The same piece by piece, families one after the other."""
    for metric in METRICS:
        same = [each for each in series if each.metric is metric and len(each)]
        if same:
            yield _head(metric, openmetrics)
            for each in same:
                yield _samples(each, openmetrics) if times else _last(each)
    if openmetrics:
        yield "# EOF\n"


def _head(metric: Metric, openmetrics: bool) -> str:
    family = metric.family if openmetrics else f"wattribute_{metric.field}"
    unit = f"# UNIT {family} {metric.unit}\n" if openmetrics else ""
    return f"# HELP {family} {metric.help}\n# TYPE {family} {metric.kind}\n{unit}"


def _name(each: Series) -> str:
    return f"wattribute_{each.metric.field}{_labels(each.labels)} "


def _labels(labels: Labels) -> str:
    return "{" + ",".join(f'{name}="{value.translate(_ESCAPED)}"' for name, value in labels) + "}"


def _samples(each: Series, openmetrics: bool) -> str:
    thin, name = each.thinned(MS), _name(each)
    pairs = zip(thin.values.tolist(), (thin.times_ns // MS).tolist(), strict=True)
    if openmetrics:
        return "".join([f"{name}{value!r} {at // 1000}.{at % 1000:03d}\n" for value, at in pairs])
    return "".join([f"{name}{value!r} {at}\n" for value, at in pairs])


def _last(each: Series) -> str:
    return f"{_name(each)}{float(each.values[-1])!r}\n"
