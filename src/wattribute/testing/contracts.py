"""What every reader, meter, output and engine has to fulfil, as test classes to subclass; needs pytest.

A plug-in's test module subclasses one and says what it needs::

    class TestMyReader(ReaderContract):
        name = "myformat"
        samples = [Path(__file__).parent / "small.my"]  # beside it small.my.golden

Run pytest once with WATTRIBUTE_GOLDEN=write to write the golden files, and read them before you commit them.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

from .. import archive, attribute, load, read, save, write
from ..comparison import Ensemble
from ..errors import OutputError, WattributeError
from ..model import Attribution, Recording, Signal, counts
from ..model.recording import KINDS
from ..outputs import format_of
from ..plugins import Availability, Meter, Output, outputs, readers
from .recordings import RecordingBuilder, as_text, small
from .simulation import Simulation, Wave


def files_of(folder: Path) -> dict[Path, bytes]:
    """The content of every file below a folder."""
    return {path.relative_to(folder): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


# ----------------------------------------------------------------------------------------------------------- a reader


class ReaderContract:
    """Golden, detected under an unknown name, an exact archive, and not claimed by another reader; for every sample."""

    name: ClassVar[str]  # of the plug-in, which has to be installed
    samples: ClassVar[Sequence[Path]]  # each with its text (``recordings.as_text``) in FILE.golden

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        if "sample" in metafunc.fixturenames:
            metafunc.parametrize("sample", self.samples, ids=[path.name for path in self.samples])

    def path(self, sample: Path, folder: Path) -> Path:
        """The file or folder to read; override if a sample has to be made in ``folder`` first."""
        return sample

    def reader(self, sample: Path) -> str:
        """The plug-in that has to read this sample."""
        return self.name

    @pytest.fixture
    def unknown(self, sample: Path, tmp_path: Path) -> Path:
        """The sample under a name that says nothing."""
        path, unknown = self.path(sample, tmp_path), tmp_path / "unknown"
        (shutil.copytree if path.is_dir() else shutil.copy)(path, unknown)
        return unknown

    def test_is_detected_under_an_unknown_name(self, sample: Path, unknown: Path) -> None:
        assert read(unknown).metadata["format"] == self.reader(sample)

    def test_is_the_golden_recording(self, sample: Path, unknown: Path) -> None:
        golden, text = Path(f"{sample}.golden"), as_text(read(unknown))
        if os.environ.get("WATTRIBUTE_GOLDEN") == "write":
            golden.write_text(text, encoding="utf-8")
        assert golden.is_file(), f"{golden} is not there; run with WATTRIBUTE_GOLDEN=write, then read it"
        assert text == golden.read_text(encoding="utf-8")

    def test_an_archive_holds_all_of_it_and_again_the_same(self, unknown: Path, tmp_path: Path) -> None:
        recording = read(unknown)
        save(recording, tmp_path / "once.watt")
        once = load(tmp_path / "once.watt")
        assert as_text(once) == as_text(recording)
        save(once, tmp_path / "twice.watt")
        assert files_of(tmp_path / "once.watt") == files_of(tmp_path / "twice.watt")
        assert archive.load(tmp_path / "twice.watt").metadata == once.metadata

    def test_no_other_reader_takes_it(self, sample: Path, tmp_path: Path) -> None:
        path = self.path(sample, tmp_path)
        assert [name for name in readers.names() if readers.get(name).detects(path)] == [self.reader(sample)]

    def test_leaves_other_files_alone(self, sample: Path, tmp_path: Path) -> None:
        """``detects`` is asked about any file and never raises."""
        reader = readers.get(self.reader(sample))
        for name, content in (("empty", b""), ("zeros", bytes(5000)), ("text", b"hello, world\n"), ("half", b"{")):
            (tmp_path / name).write_bytes(content)
            assert not reader.detects(tmp_path / name), name
        (tmp_path / "folder").mkdir()
        assert not reader.detects(tmp_path / "folder")


# ------------------------------------------------------------------------------------------------------------ a meter


class MeterContract:
    """Channels in a fixed order, readings that fit them, times that never fall, an end that can be repeated."""

    reads: ClassVar[int] = 5

    def make(self, folder: Path) -> Meter:
        """A meter that is available: over a fake root in ``folder``, with a clock of your own if you like."""
        raise NotImplementedError

    def between(self) -> None:
        """What happens between two reads: time passes."""

    @pytest.fixture
    def meter(self, tmp_path: Path) -> Any:
        meter = self.make(tmp_path)
        yield meter
        meter.close()

    def test_is_available(self, meter: Meter) -> None:
        assert isinstance(meter.name, str)
        assert isinstance(meter.available(), Availability)
        assert meter.available().ok, meter.available().reason

    def test_channels_say_what_is_read(self, meter: Meter) -> None:
        meter.available()
        channels = meter.channels()
        assert channels, "an available meter has a channel"
        assert list(meter.channels()) == list(channels), "channels come in the same order every time"
        for channel in channels:
            assert channel.kind in KINDS
            assert channel.unit
            assert channel.scale > 0
            assert channel.device.name
            assert channel.device.kind
        named = [(channel.name, channel.device.host, channel.device.name) for channel in channels]
        assert len(set(named)) == len(named), "a device has one channel of a name"

    def test_readings_fit_their_channels(self, meter: Meter) -> None:
        """One (time, value) per channel and read: whole numbers where the channel says so, below the width of a
        counter, which never falls but to start again from 0."""
        meter.available()
        channels = meter.channels()
        before: list[Any] = [None] * len(channels)
        for _ in range(self.reads):
            readings = meter.read()
            assert len(readings) == len(channels)
            for row, (channel, (at_ns, value)) in enumerate(zip(channels, readings, strict=True)):
                assert isinstance(at_ns, int)
                if value is None:
                    continue
                assert isinstance(value, int) if channel.whole else isinstance(value, int | float), channel.name
                if channel.wraps_at is not None:
                    assert 0 <= value < channel.wraps_at
                elif channel.kind == "counter" and before[row] is not None:
                    assert value >= before[row], channel.name
                before[row] = value
            self.between()
        assert any(value is not None for value in before), "no channel gave a reading"

    def test_times_never_fall(self, meter: Meter) -> None:
        meter.available()
        last = [0] * len(meter.channels())
        for _ in range(self.reads):
            for row, (at_ns, value) in enumerate(meter.read()):
                assert value is None or at_ns >= last[row]
                last[row] = last[row] if value is None else at_ns
            self.between()

    def test_close_may_come_twice(self, meter: Meter) -> None:
        meter.available()
        meter.close()

    def test_starts_without_numpy(self, meter: Meter) -> None:
        """It runs in a process that starts while the user's command waits."""
        module = type(meter).__module__
        program = f"import sys, {module}; sys.exit('numpy' in sys.modules)"
        where = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        done = subprocess.run([sys.executable, "-c", program], env=os.environ | where, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr or f"{module} imports NumPy; import it where it is needed"


# ---------------------------------------------------------------------------------------------------------- an output


class OutputContract:
    """A file that appears whole or not at all, holds the joules, and says clearly what it cannot show."""

    name: ClassVar[str]  # of the plug-in, which has to be installed
    file: ClassVar[str] = "result"  # the name of the file to write
    options: ClassVar[Mapping[str, Any]] = {}

    def sum_j(self, path: Path) -> float | None:
        """What a program that reads this format finds: self joules of all rows. None: not to be found there."""
        return None

    @pytest.fixture
    def attribution(self) -> Attribution:
        """500 J of a thread that spends 300 J in ``main`` and 200 J in a callee with a name that needs escapes."""
        builder = RecordingBuilder(1000, epoch_ns=1_700_000_000 * 10**9)
        builder.thread([(0, 5000, "main"), (1000, 3000, '"<a>;\n|b')]).counter(
            "package 0", range(0, 600, 100), every=1000
        )
        return attribute(builder.recording())

    @pytest.fixture
    def output(self) -> Output:
        return outputs.get(self.name)

    def test_says_how_its_files_end(self, output: Output) -> None:
        assert isinstance(output.SUFFIXES, tuple)
        for suffix in output.SUFFIXES:
            assert suffix.startswith(".")
            assert suffix == suffix.lower()
        assert not output.SUFFIXES or any(format_of(f"x{suffix}") == self.name for suffix in output.SUFFIXES)

    def test_writes_one_file_with_the_joules(self, attribution: Attribution, tmp_path: Path) -> None:
        write(attribution, tmp_path / self.file, self.name, **self.options)
        assert [path.name for path in tmp_path.iterdir()] == [self.file]
        assert (tmp_path / self.file).stat().st_size
        written_j = self.sum_j(tmp_path / self.file)
        if written_j is not None:
            assert written_j == pytest.approx(attribution.rows["self_j"].sum(), rel=1e-6)

    def test_takes_the_place_of_a_file_at_once(self, attribution: Attribution, tmp_path: Path) -> None:
        """Who has the old file open reads the old one to its end."""
        old = b"old" * 100_000
        (tmp_path / self.file).write_bytes(old)
        with (tmp_path / self.file).open("rb") as before:
            write(attribution, tmp_path / self.file, self.name, **self.options)
            assert before.read() == old, "the file was changed in place; use wattribute.files.replacing"
        assert (tmp_path / self.file).read_bytes() != old

    def test_leaves_the_old_file_when_it_fails(
        self, attribution: Attribution, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (tmp_path / self.file).write_bytes(b"old")

        def fail(*_: object, **__: object) -> None:
            raise OSError(28, "No space left on device")

        for name in ("replace", "rename"):
            monkeypatch.setattr(os, name, fail)
        with pytest.raises(OutputError, match="No space left"):
            write(attribution, tmp_path / self.file, self.name, **self.options)
        assert files_of(tmp_path) == {Path(self.file): b"old"}

    def test_a_folder_that_is_not_there_is_one_line(self, attribution: Attribution, tmp_path: Path) -> None:
        with pytest.raises(WattributeError) as caught:
            write(attribution, tmp_path / "nowhere" / self.file, self.name, **self.options)
        assert "nowhere" in str(caught.value)
        assert "\n" not in str(caught.value)

    def test_several_runs_are_written_or_refused(
        self, attribution: Attribution, output: Output, tmp_path: Path
    ) -> None:
        both = Ensemble.of({"a": attribution.recording, "b": attribution.recording}).attribute(by="path")
        if getattr(output, "SEVERAL_RUNS", False):
            write(both, tmp_path / self.file, self.name, **self.options)
            assert (tmp_path / self.file).stat().st_size
            return
        with pytest.raises(WattributeError, match="one run"):
            write(both, tmp_path / self.file, self.name, **self.options)
        assert not list(tmp_path.iterdir())


# ---------------------------------------------------------------------------------------------------------- an engine

QUESTIONS: dict[str, dict[str, Any]] = {
    "default": {},
    "host": {"of": "host"},
    "views side by side": {"of": ["kernels", "host"]},
    "by path": {"of": "host", "by": "process,path"},
    "by everything": {"by": "device,signal,of,host,process,location,frame,paradigm,role,run,file,line"},
    "by bin": {"by": "device,bin=250ms"},
    "by reading": {"by": "device,reading", "of": "kernels", "metric": "energy_count:device=0"},
    "without bounds": {"bounds": False, "of": "host"},
    "statistics": {"statistics": True},
    "by process": {"share": "process", "of": "host"},
    "by load": {"share": "load", "load": "energy", "metric": "energy_count", "of": "kernels"},
    "full": {"share": "full", "of": "host"},
    "window": {"method": "window", "of": "host"},
    "step": {"integrate": "step"},
    "a part of the time": {"begin": 1, "end": 3.5},
    "nothing there": {"begin": 100, "end": 101},
    "some processes and frames": {"process": "Rank [12]", "exclude_frame": "MPI", "of": "host"},
    "a map": {"maps": ["ZONE -> MPI Rank 0, MPI Rank 3"], "metric": "ZONE"},
    "one group": {"metric": "ZONE", "process": "Rank [01]$"},
    "another kind of metric": {"metric_kinds": ["ZONE=gauge:W"], "metric": "ZONE", "of": "host"},
    "no such metric": {"metric": "nothing like it"},
    "nobody uses it": {"maps": ["energy -> nobody"], "metric": "energy_count"},
}


@cache
def job() -> Recording:
    """Two nodes, four ranks, four GPUs with a counter each, and a counter per package that two ranks share."""
    simulation = Simulation(length_s=4.0, ticks_per_s=1_000_000, host="n0", name="job")
    for rank in range(4):
        host, local = f"n{rank // 2}", rank % 2
        if local == 0:
            package = simulation.device("package 0", 80.0, host=host).counter(0.01, "powercap:::ENERGY_UJ:ZONE0")
        gpu = simulation.device(f"GPU {local}", 90.0, host=host)
        gpu.counter(0.01, f"rocm_smi:::energy_count:device={local}", noise_w=5.0)
        steps = [(0.2 + 0.05 * step, 0.002 * rank) for step in range(70)]
        kernels = [(name, at + late, at + late + 0.018, watts) for at, late in steps
                   for name, late, watts in (("stencil", late, 220.0), ("gemm", late + 0.02, 390.0))]  # fmt: skip
        calls = [("main", 0.05, 3.9, 5.0)]
        for at, late in steps:
            calls += [("step", at, at + 0.049, 20.0), ("MPI_Wait", at + 0.04 + late / 2, at + 0.048, 2.0)]
        simulation.thread(package, calls, f"MPI Rank {rank}", "Master thread")
        simulation.stream(gpu, kernels, f"MPI Rank {rank}", f"HIP[{local}:0]")
    simulation.tenant(package, "a neighbour", Wave(30, 0, 0.7, 0.5))
    return simulation.run().recording


def answer(source: Any, **asked: Any) -> Attribution | str:
    """An attribution, or the line that says why there is none."""
    try:
        return attribute(source, **asked)
    except WattributeError as error:
        return str(error)


def assert_same(actual: Attribution | str, expected: Attribution | str, within: float) -> None:
    """Equal to the bit, or within so much relatively and in any order of rows."""
    if isinstance(expected, str) or isinstance(actual, str):
        assert actual == expected
        return
    for name in ("devices", "rows"):
        a, b = getattr(actual, name), getattr(expected, name)
        if within:
            assert_frame_equal(a, b, check_row_order=False, check_exact=False, rel_tol=within, abs_tol=within)
        else:
            assert a.equals(b), name
            assert a.schema == b.schema
    assert list(actual.problems) == list(expected.problems)


class EngineContract:
    """The answers of one thread on this machine to every question."""

    name: ClassVar[str]  # what users write for ``engine=``; or override the fixture ``engine``
    within: ClassVar[float] = 0.0  # how far its numbers may be from those of "local", relatively; 0: the same bits
    refuses: ClassVar[Mapping[str, str]] = {}  # question → words of the error where the engine cannot answer

    @pytest.fixture
    def engine(self) -> str:
        return self.name

    @pytest.fixture
    def source(self, tmp_path: Path) -> Path:
        """What is asked about: a path that the engine's workers can read."""
        save(job(), tmp_path / "job.watt")
        return tmp_path / "job.watt"

    @pytest.mark.parametrize("question", QUESTIONS)
    def test_the_same_answer(self, source: Path, engine: str, question: str) -> None:
        asked = QUESTIONS[question]
        if question in self.refuses:
            assert self.refuses[question] in str(answer(source, engine=engine, **asked))
            return
        assert_same(answer(source, engine=engine, **asked), answer(source, threads=1, **asked), self.within)

    @pytest.mark.parametrize("in_memory", [True, False], ids=["in memory", "an archive"])
    def test_recordings_in_memory_and_archives(self, tmp_path: Path, engine: str, in_memory: bool) -> None:
        save(small(), tmp_path / "a.watt")
        given: Any = small() if in_memory else tmp_path / "a.watt"
        for asked in ({}, {"of": "host", "by": "path"}, {"by": "reading"}):
            if "by reading" in self.refuses and asked.get("by") == "reading":
                continue
            asked = asked | {"metric": "energy"}
            assert_same(answer(given, engine=engine, **asked), answer(given, threads=1, **asked), self.within)

    def test_per_unit_of_work(self, tmp_path: Path, engine: str) -> None:
        tokens = Signal("tokens", "delta", counts.UNIT, np.array([15, 47]), np.array([3.0, 4.0]), location=0)
        save(replace(small(), signals=(*small().signals, tokens)), tmp_path / "a.watt")
        asked: dict[str, Any] = {"metric": "energy", "of": "host", "by": "path", "per": "tokens"}
        if "per" in self.refuses:
            assert self.refuses["per"] in str(answer(tmp_path / "a.watt", engine=engine, **asked))
            return
        expected = answer(tmp_path / "a.watt", threads=1, **asked)
        assert_same(answer(tmp_path / "a.watt", engine=engine, **asked), expected, self.within)

    def test_one_row_per_span_as_a_folder_of_parquet(self, tmp_path: Path, source: Path, engine: str) -> None:
        expected = attribute(source, spans=True, of=["kernels", "host"]).rows
        attribution = attribute(source, spans=tmp_path / "spans", of=["kernels", "host"], engine=engine)
        order = ["of", "device", "host", "location", "start_ns", "depth", "end_ns"]
        rows = pl.read_parquet(tmp_path / "spans" / "*.parquet").sort(order, maintain_order=True)
        expected = expected.sort(order, maintain_order=True)
        assert_frame_equal(rows, expected, check_exact=not self.within, rel_tol=self.within or 1e-5)
        assert attribution.rows.height < expected.height
