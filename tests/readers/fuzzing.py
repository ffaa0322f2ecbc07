"""Damaged files for every reader: each gives a Recording or an error of ours, and no message has control characters.

``python -m tests.readers.fuzzing --files 200`` tries so many of each sample and prints a table by reader.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import tempfile
import traceback
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import wattribute
from tests.readers import tables_of_runs
from tests.readers.samples import SAMPLES, format_of, made
from wattribute.errors import WattributeError
from wattribute.journal import file as journal
from wattribute.readers.otf2.writer import Writer
from wattribute.testing.sampling import Script, SimulatedMeter, Time, sample
from wattribute.testing.simulation import Wave

VALUES = (
    None,
    True,
    -1,
    0,
    1,
    2**31,
    2**63,
    -(2**63),
    2**70,
    1e308,
    float("nan"),
    "",
    "x",
    "../../x",
    "\x1b[31m",
    [],
    {},
    [[]],
)


def seeds(folder: Path) -> dict[str, Path]:
    """One valid file or folder per reader, by a name that begins with the reader's."""
    found = {sample.name: made(sample, folder) for sample in SAMPLES}
    rows = [tables_of_runs.codecarbon_row(60 * n, 30.0, 0.001, 0.0002) for n in range(1, 5)]
    found["codecarbon-runs.csv"] = tables_of_runs.write(folder / "emissions.csv", tables_of_runs.CODECARBON, rows)
    rows = [tables_of_runs.eco2ai_row(60 * n, 30.0, 0.001, 0.0004) for n in range(1, 5)]
    found["eco2ai-runs.csv"] = tables_of_runs.write(folder / "emission.csv", tables_of_runs.ECO2AI, rows)
    time = Time()
    book = folder / "journal"
    book.mkdir()
    recording = sample(book, [SimulatedMeter(time, [Wave(300), Wave(100)], 0.1)], Script(time, 1.0))
    found["journal-run"] = book
    wattribute.save(recording, folder / "run.watt")
    found["watt-run"] = folder / "run.watt"
    with Writer(folder / "otf2", "trace") as trace:
        node = trace.node("n", domain="shared_memory")
        process, region = trace.process("p", trace.node("0", "package", node)), trace.region("main")
        location, recorder = trace.location("l", process), trace.location("m", process, "metric")
        power = trace.metric_class([trace.member("probe", "W", "absolute_point", "double")])
        scopes = (("location", location.number), ("process", process), ("node", 1), ("group", 0))
        metrics = [trace.metric_instance(power, recorder.number, *scope) for scope in scopes]
        trace.window("w", [location.number])
        for at in range(0, 1000, 10):
            location.enter(at, region)
            location.leave(at + 5, region)
            recorder.metric(at, metrics[at // 10 % 4], float(at))
    found["otf2-trace"] = folder / "otf2"
    return found


# ------------------------------------------------------------------------------------------------------------- damage


def damaged(data: bytes, draw: random.Random) -> bytes:
    """Bytes with a few changes: flipped, cut out, doubled, or the end lost."""
    out = bytearray(data)
    for _ in range(draw.choice([1, 1, 3, 20])):
        at = draw.randrange(len(out) + 1)
        match draw.randrange(5):
            case 0 if at < len(out):
                out[at] = draw.randrange(256)
            case 1 if at < len(out):
                out[at] ^= 1 << draw.randrange(8)
            case 2:
                del out[at : at + draw.randrange(64)]
            case 3:
                out[at:at] = out[at : at + draw.randrange(64)]
            case _:
                if draw.random() < 0.3:
                    del out[at:]
    return bytes(out)


def changed(value: Any, draw: random.Random) -> Any:
    """Plain values, valid as JSON, with one of them replaced, lost or repeated."""
    if isinstance(value, dict) and value and draw.random() < 0.9:
        key = draw.choice(list(value))
        if draw.random() < 0.1:
            return {name: each for name, each in value.items() if name != key}
        return value | {key: changed(value[key], draw)}
    if isinstance(value, list) and value and draw.random() < 0.9:
        at = draw.randrange(len(value))
        if draw.random() < 0.1:
            return value[:at] + value[at + 1 :]
        return [*value[:at], changed(value[at], draw), *value[at + 1 :]]
    return draw.choice(VALUES)


def damaged_json(data: bytes, draw: random.Random) -> bytes:
    return json.dumps(changed(json.loads(data), draw)).encode()


def damaged_journal(data: bytes, draw: random.Random) -> bytes:
    """A journal whose checksums are right: one record has another content."""
    records = list(journal.records(data, len(journal.MAGIC)))
    chosen = draw.choice([0, draw.randrange(len(records))])
    out = journal.MAGIC
    for number, (kind, payload, _) in enumerate(records):
        if number == chosen:
            payload = damaged(payload, draw) if kind == journal.READINGS else damaged_json(payload, draw)
        out += journal.record(kind, payload)
    return out


def harm(path: Path, draw: random.Random) -> None:
    """Damage a file, or one file of a folder."""
    files = [path] if path.is_file() else sorted(each for each in path.rglob("*") if each.is_file())
    file = draw.choice(files)
    data = file.read_bytes()
    ways: list[Callable[[bytes, random.Random], bytes]] = [damaged]
    if file.name == journal.NAME:
        ways.append(damaged_journal)
    elif data[:1] in (b"{", b"["):
        ways.append(damaged_json)
    way = draw.choice(ways)
    try:
        file.write_bytes(way(data, draw))
    except ValueError:  # not JSON after all
        file.write_bytes(damaged(data, draw))


# ------------------------------------------------------------------------------------------------------------ reading


def outcome(path: Path, format: str) -> str:
    """ "read" or "refused"; other exceptions are the reader's."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            recording = wattribute.read(path, format=format)
            for location in recording.spans.locations():
                recording.spans.spans(location)
            messages = [problem.message for problem in recording.problems]
            result = "read"
            if recording.signals and recording.spans.locations():
                wattribute.attribute(recording)
    except WattributeError as error:
        messages, result = [str(error)], "refused"
    for message in messages:
        assert all(letter.isprintable() or letter in "\n\t\u2028\ufffd" for letter in message), repr(message)
    return result


def tried(name: str, seed: Path, count: int, scratch: Path, first: int = 0) -> tuple[Counter[str], list[str]]:
    """Damage a seed so often; how each attempt ended, and the tracebacks."""
    format, counts, failures = name.partition("-")[0], Counter[str](), []
    for number in range(first, first + count):
        path = scratch / (seed.name if seed.is_file() else f"harmed{seed.suffix}")
        if seed.is_dir():
            shutil.rmtree(path, ignore_errors=True)
            shutil.copytree(seed, path)
        else:
            shutil.copy(seed, path)
        harm(path, random.Random(f"{name} {number}"))
        try:
            counts[outcome(path, format)] += 1
        except Exception:
            counts["traceback"] += 1
            failures.append(f"{name} {number}: {traceback.format_exc()}")
    return counts, failures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=200)
    parser.add_argument("--only", default="")
    parser.add_argument("--first", type=int, default=0, help="number of the first file; others are damaged otherwise")
    options = parser.parse_args()
    table: dict[str, Counter[str]] = defaultdict(Counter)
    with tempfile.TemporaryDirectory() as place:
        for folder in ("seeds", "scratch"):
            Path(place, folder).mkdir()
        for name, seed in seeds(Path(place, "seeds")).items():
            if options.only not in name:
                continue
            counts, failures = tried(name, seed, options.files, Path(place, "scratch"), options.first)
            table[format_of(Path(name))] += counts
            for failure in failures[:3]:
                print(failure)
    print(f"{'reader':15s} {'files':>7s} {'read':>7s} {'refused':>8s} {'tracebacks':>11s}")
    for reader, counts in sorted(table.items()):
        print(f"{reader:15s} {counts.total():7d} {counts['read']:7d} {counts['refused']:8d} {counts['traceback']:11d}")
    os._exit(int(any(counts["traceback"] for counts in table.values())))


if __name__ == "__main__":
    main()
