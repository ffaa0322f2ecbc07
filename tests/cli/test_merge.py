"""``wattribute merge``: a power log belongs to the whole job, not to each of its parts."""

import pytest

import wattribute


def test_a_power_log_counts_once(command, tmp_path):
    (tmp_path / "a.csv").write_text("name,start,end\na,0,4\n")
    (tmp_path / "b.csv").write_text("name,start,end\nb,0,4\n")
    (tmp_path / "power.csv").write_text("time_s,cpu_power_w\n0,10\n4,10\n")
    words = ["a.csv", "b.csv", "-o", "job.watt", "--align", "start", "--signals", "power.csv", "--offset", "0"]
    done = command("merge", *words, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    answer = wattribute.attribute(tmp_path / "job.watt", by="frame")
    assert answer.devices["measured_j"].to_list() == [pytest.approx(40)]  # 10 W for 4 s, once
    rows = dict(answer.rows.select("frame", "self_j").iter_rows())
    assert rows == {"a": pytest.approx(20), "b": pytest.approx(20)}  # shared evenly by two users
