"""Archives written by the workers of a cluster: the bytes of one written here, also when a worker is lost."""

import json

import pytest

import wattribute
from tests.engines.deadly import Deadly
from wattribute import archive
from wattribute.engines import dask as engine
from wattribute.engines.convert import convert
from wattribute.errors import NoDataError, OptionError, OutputError


def content(folder):
    """Every file of an archive; the JSON as values."""
    files = {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    return files | {archive.JSON: json.loads(files[archive.JSON])}


def test_the_same_archive_as_here(tmp_path, trace, dask):
    here, there = tmp_path / "here.watt", tmp_path / "there.watt"
    convert(trace, here)
    convert(trace, there, dask)
    assert content(there) == content(here)
    assert wattribute.attribute(there).rows.equals(wattribute.attribute(trace).rows)


def test_damaged_files_are_told_alike(tmp_path, trace, dask):
    import shutil

    damaged = tmp_path / "damaged"
    shutil.copytree(trace, damaged)
    largest = max(damaged.rglob("*.evt"), key=lambda path: path.stat().st_size)
    largest.write_bytes(largest.read_bytes()[:2000])
    convert(damaged, tmp_path / "here.watt")
    convert(damaged, tmp_path / "there.watt", dask)
    assert content(tmp_path / "there.watt") == content(tmp_path / "here.watt")
    assert any(p.kind == "truncated" for p in archive.load(tmp_path / "there.watt").problems)


def test_a_killed_worker_changes_nothing(tmp_path, trace, dask):
    import dataclasses

    class Mortal(Deadly):
        def spans(self, location):
            self.fold(location, (), None) if location == self.location and not self.marker.exists() else None
            return self.inner.spans(location)

    recording = wattribute.read(trace)
    chosen = list(recording.spans.locations())[-1]
    mortal = dataclasses.replace(recording, spans=Mortal(recording.spans, chosen, tmp_path / "died"))
    archive.save(recording, tmp_path / "here.watt")
    archive.save(
        mortal, tmp_path / "there.watt", spans=lambda *given: engine.write_spans(dask.partition(":")[2], None, *given)
    )
    assert (tmp_path / "died").exists()
    spans = [sorted((tmp_path / name / "spans").iterdir()) for name in ("here.watt", "there.watt")]
    assert [path.name for path in spans[0]] == [path.name for path in spans[1]]
    assert all(a.read_bytes() == b.read_bytes() for a, b in zip(*spans, strict=True))


def test_a_worker_that_does_not_see_the_folder(tmp_path, trace):
    recording = wattribute.read(trace)
    data = engine.packed((engine.identity.code(), recording.spans))
    with pytest.raises(OutputError, match=r"worker .*: the folder .* is not there"):
        engine._write(data, str(tmp_path / "none"), [0], {})
    with pytest.raises(NoDataError, match="has another file than the client"):
        engine._write(data, str(tmp_path), [0], {0: (engine.identity.FileIdentity(b"another"),) * 2})


def test_engines_that_do_not_convert(tmp_path, trace):
    with pytest.raises(OptionError, match="unknown engine 'arkouda'"):
        convert(trace, tmp_path / "x.watt", "arkouda:localhost:5555")


def test_on_the_command_line(command, tmp_path, trace, dask):
    assert command("convert", trace, tmp_path / "x.watt", "--engine", dask).returncode == 0
    assert archive.about(tmp_path / "x.watt")["state"] == "complete"
