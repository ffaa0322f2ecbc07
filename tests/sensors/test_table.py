"""The table of sensors: which line speaks, what a user's file may say, and how gains become ranges."""

from __future__ import annotations

from pathlib import Path

import pytest

from wattribute.errors import OptionError
from wattribute.sensors import Evidence, known_lines
from wattribute.sensors.table import Triple, read_lines, truths, user_folder

NOWHERE = Path("/nonexistent")
INSTANT = "nvidia-smi GPU 0 power.draw.instant"


def line(name, **evidence):
    return known_lines((), NOWHERE).line(Evidence(name, **evidence))


def sensor_file(folder, **rows):
    path = folder / "my.toml"
    path.write_text("[[sensor]]\n" + "".join(f"{name} = {value}\n" for name, value in rows.items()), "utf-8")
    return path


def test_a_known_card_comes_before_what_the_log_shows():
    assert line(INSTANT, card="NVIDIA A100-PCIE-40GB", draw="average").window_s == Triple(0.017, 0.025, 0.031)
    assert "RTX 3090" in line(INSTANT, card="NVIDIA GeForce RTX 3090").card


def test_an_unknown_card_is_told_by_its_own_log():
    assert line(INSTANT, draw="average").window_s.likely == 0.1
    assert line(INSTANT, draw="instant", seen_s=0.1).window_s.most == pytest.approx(0.108)
    assert line(INSTANT, draw="instant", seen_s=0.02).window_s.most == pytest.approx(0.02)
    assert line("nvidia-smi GPU 0 power.draw", seen_s=0.015).kind == "low pass"
    assert line("nvidia-smi GPU 0 power.draw.average").kind == "running mean"


def test_the_driver_decides_what_power_draw_is():
    card = {"card": "NVIDIA GeForce RTX 3070 Ti"}
    assert line("nvidia-smi GPU 0 power.draw", driver="530.30.02", **card).kind == "boxcar"
    assert line("nvidia-smi GPU 0 power.draw", driver="535.54.03", **card).kind == "running mean"


def test_a_sensor_nobody_knows_has_wide_limits_and_a_counter_none():
    unknown = line("wall plug watts")
    assert (unknown.kind, unknown.known, unknown.cap_w) == ("unknown", False, None)
    assert line("a counter", kind="counter") is None


def test_every_packaged_line_has_a_source_and_a_range_that_holds_what_was_measured():
    for one in known_lines((), NOWHERE).lines:
        assert one.source
        assert not one.corrects  # the table only widens
        assert one.cap_w is None or one.cap_w > one.floor_w
        hard = truths(one.hard_pairs, 200.0)
        soft = truths(one.pairs, 200.0)
        assert hard[0] <= soft[0] <= soft[1] <= hard[1]


def test_truth_behind_a_reading_by_hand():
    # reading = gain · truth + offset: (100 − 4) / 0.96 = 100; (100 + 10) / 1.1 = 100; (100 − 0) / 0.8 = 125
    assert truths([(0.96, 4.0), (1.1, -10.0), (0.8, 0.0)], 100.0) == pytest.approx((100.0, 125.0))


def test_a_users_line_comes_first_and_corrects(tmp_path):
    path = sensor_file(tmp_path, field="'instant'", kind="'boxcar'", window_s=0.1, gain="[0.94, 0.95, 0.96]")
    mine = known_lines([path], NOWHERE).line(Evidence(INSTANT))
    assert mine.corrects
    assert mine.likely == (0.95, 0.0)
    assert mine.window_s == Triple(0.1, 0.1, 0.1)
    # twice as far from the likely gain for the hard range
    assert sorted({gain for gain, _ in mine.hard_pairs}) == pytest.approx([0.93, 0.94, 0.96, 0.97])


def test_the_users_folder_is_read_and_named_files_come_before_it(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    folder = user_folder()
    folder.mkdir(parents=True)
    sensor_file(folder, field="'instant'", kind="'boxcar'", source="'folder'")
    assert known_lines().line(Evidence(INSTANT)).source == "folder"
    named = tmp_path / "named"
    named.mkdir()
    path = sensor_file(named, field="'instant'", kind="'boxcar'", source="'named'")
    assert known_lines(path).line(Evidence(INSTANT)).source == "named"


@pytest.mark.parametrize(
    ("rows", "text"),
    [
        ({"kind": "'boxcar'", "windw_s": 0.1}, "unknown key.*windw_s.*window_s"),
        ({"kind": "'boxer'"}, "unknown kind"),
        ({"window_s": "[0.3, 0.2, 0.1]"}, "ascend"),
        ({"driver": "'new'"}, "driver 'new'"),
        ({"field": "'('"}, "sensor 1"),
        ({"gain": 0}, "positive"),
    ],
)
def test_a_mistake_names_file_line_and_what_is_expected(tmp_path, rows, text):
    path = sensor_file(tmp_path, **rows)
    with pytest.raises(OptionError, match=text) as error:
        read_lines(path)
    assert "my.toml" in str(error.value)


def test_a_file_that_is_missing_empty_or_no_toml(tmp_path):
    for content, text in ((None, "No such file"), ("", "no \\[\\[sensor\\]\\]"), ("= 3", "not TOML")):
        path = tmp_path / "x.toml"
        if content is not None:
            path.write_text(content)
        with pytest.raises(OptionError, match=text):
            read_lines(path)
