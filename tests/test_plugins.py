"""Plug-ins are plain entry points: ours are found like anyone's."""

import pytest

from wattribute import errors, plugins


def test_ours_are_declared_and_load():
    assert "watt" in plugins.readers.names()
    for registry in (plugins.readers, plugins.meters, plugins.outputs):
        for name in registry.names():
            assert registry.get(name) is not None


def test_every_reader_and_output_has_its_functions():
    for name in plugins.readers.names():
        reader = plugins.readers.get(name)
        assert callable(reader.detects)
        assert callable(reader.read)
    for name in plugins.outputs.names():
        assert callable(plugins.outputs.get(name).write)


def test_a_wrong_name_suggests_close_ones():
    with pytest.raises(errors.OptionError, match="did you mean 'watt'"):
        plugins.readers.get("wat")


def test_someone_elses_plug_in_is_found(tmp_path, monkeypatch):
    (tmp_path / "theirs.py").write_text("def detects(path): return False\ndef read(path, selection): ...\n")
    info = tmp_path / "theirs-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Name: theirs\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[wattribute.readers]\ntheirs = theirs\nbroken = not_there\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert plugins.readers.get("theirs").detects(tmp_path) is False
    with pytest.raises(errors.OptionError, match="reader 'broken' cannot be loaded"):
        plugins.readers.get("broken")
