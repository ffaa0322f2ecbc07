"""Control groups, both versions, as trees of files."""

import os

import pytest

from wattribute.recorders.cgroups import Usage, folder, members

V2 = "36 25 0:30 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n"
V1 = (
    "30 25 0:26 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
    "31 25 0:27 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
)


def tree(root, mounts, groups, files):
    (root / "proc/self").mkdir(parents=True)
    (root / "proc/41").mkdir()
    (root / "proc/self/mountinfo").write_text(mounts)
    (root / "proc/41/cgroup").write_text(groups)
    for name, text in files.items():
        path = root / "sys/fs/cgroup" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def v2(root):
    box = "machine.slice/libpod-abc.scope"
    stat = "usage_usec 1500000\nuser_usec 1000000\nsystem_usec 500000\n"
    files = {f"{box}/cpu.stat": stat, f"{box}/memory.peak": "2000\n", f"{box}/cgroup.procs": "41\n43\n"}
    return tree(root, V2, f"0::/{box}\n", files | {f"{box}/inner/cgroup.procs": "47\n"})


def v1(root):
    box = "docker/abc"
    files = {
        f"cpu,cpuacct/{box}/cpuacct.usage": "2500000000\n",
        f"cpu,cpuacct/{box}/cgroup.procs": "41\n42\n",
        f"memory/{box}/memory.max_usage_in_bytes": "3000\n",
    }
    return tree(root, V1, f"5:cpu,cpuacct:/{box}\n4:memory:/{box}\n0::/other\n", files)


@pytest.mark.parametrize(
    ("make", "cpu_s", "memory", "pids"), [(v1, 2.5, 3000, [41, 42]), (v2, 1.5, 2000, [41, 43, 47])]
)
def test_time_memory_and_processes(tmp_path, make, cpu_s, memory, pids):
    root = make(tmp_path)
    usage = Usage(41, root)
    usage.look()
    assert (usage.cpu_s, usage.max_rss_bytes) == (cpu_s, memory)
    assert members(41, root) == pids


def test_the_last_value_counts_when_the_group_is_gone(tmp_path):
    root = v2(tmp_path)
    stat = root / "sys/fs/cgroup/machine.slice/libpod-abc.scope/cpu.stat"
    usage = Usage(41, root)
    usage.look()
    stat.write_text("usage_usec 4000000\nuser_usec 1\n")
    usage.look()
    stat.write_text("")  # what a read of a removed group gives
    usage.look()
    assert usage.cpu_s == 4.0


def test_a_mount_that_begins_below_the_top(tmp_path):
    """Inside a container of its own: the mount's top is our group, and the path tells it from the real top."""
    mounts = "36 25 0:30 /outer /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"
    root = tree(tmp_path, mounts, "0::/outer/box\n", {"box/cpu.stat": "usage_usec 7\n"})
    assert folder(41, "cpuacct", root) == root / "sys/fs/cgroup/box"


@pytest.mark.parametrize("groups", ["0::/\n", "0::/../elsewhere\n", "", "nonsense\n"])
def test_the_top_group_and_unknown_ones_tell_nothing(tmp_path, groups):
    root = tree(tmp_path, V2, groups, {"cpu.stat": "usage_usec 7\n", "cgroup.procs": "1\n2\n"})
    assert folder(41, "cpuacct", root) is None
    assert members(41, root) == [41]
    usage = Usage(41, root)
    usage.look()
    assert usage.cpu_s is None


def test_our_own_group_or_none():
    usage = Usage(os.getpid()).start()
    usage.stop()
    assert usage.cpu_s is None or usage.cpu_s >= 0
    assert os.getpid() in members(os.getpid())
