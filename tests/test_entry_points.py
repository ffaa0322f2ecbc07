"""Entry points as importlib.metadata finds them, without it."""

import sys
import zipfile
from importlib import metadata

import pytest

from wattribute.entry_points import EntryPoint, entry_points
from wattribute.plugins import meters


def install(folder, name, text):
    (folder / name).mkdir(parents=True)
    (folder / name / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name.split('-')[0]}\nVersion: 1\n")
    (folder / name / "entry_points.txt").write_text(text)


@pytest.mark.parametrize("group", ["wattribute.meters", "wattribute.readers", "console_scripts", "pytest11", "nothing"])
def test_the_same_as_importlib(group):
    # of two packages with one name for a thing importlib takes the later one, and which that is, is not said
    named = metadata.entry_points(group=group)
    expected = {name: {p.value for p in named if p.name == name} for name in named.names}
    found = entry_points(group, tuple(sys.path))
    assert set(found) == set(expected)
    assert all(point.value in expected[name] for name, point in found.items())


def test_sections_comments_and_odd_lines(tmp_path):
    text = "[other]\na = x:y\n\n[ours]\n# no\n; no\n b = os.path:join [extra] \nc=json\n[ours.too]\nd = x\n"
    install(tmp_path, "thing-1.0.dist-info", text)
    (tmp_path / "old.egg-info").write_text("a file, as distutils wrote it")
    found = entry_points("ours", ["/nowhere", str(tmp_path)])
    assert found == {"b": EntryPoint("b", "os.path:join [extra]"), "c": EntryPoint("c", "json")}
    assert found["b"].load() is __import__("os").path.join
    assert found["c"].load() is __import__("json")


def test_a_package_counts_where_it_comes_first(tmp_path):
    install(tmp_path / "new", "thing-2.0.dist-info", "[ours]\na = new\n")
    install(tmp_path / "old", "Thing-1.0.dist-info", "[ours]\na = old\ngone = old\n")
    found = entry_points("ours", [str(tmp_path / "new"), str(tmp_path / "old")])
    assert found == {"a": EntryPoint("a", "new")}


def test_a_zip_on_the_path_is_read_too(tmp_path, monkeypatch):
    with zipfile.ZipFile(tmp_path / "all.zip", "w") as file:
        file.writestr("thing-1.dist-info/METADATA", "Metadata-Version: 2.1\nName: thing\nVersion: 1\n")
        file.writestr("thing-1.dist-info/entry_points.txt", "[ours]\nzipped = json\n")
    monkeypatch.syspath_prepend(str(tmp_path / "all.zip"))
    assert entry_points("ours", sys.path)["zipped"].load() is __import__("json")


def test_our_meters_are_among_them():
    assert {"model", "nvml", "rapl"} <= set(meters.names())


def test_of_two_packages_with_one_name_the_first_has_it(tmp_path):
    for package in ("beta", "alpha", "gamma"):
        install(tmp_path, f"{package}-1.0.dist-info", f"[ours]\na = {package}\n")
    assert entry_points("ours", [str(tmp_path)]) == {"a": EntryPoint("a", "alpha")}
