"""CPU time of a command with its children and of the machine, from a /proc of plain files and from the real one."""

import os
import subprocess
import sys
import time

import pytest

from wattribute.recorders.accounting import (
    SCAN_NS,
    FamilyAccount,
    machine_packages,
    machine_s,
    process_ns,
    reserved_part,
)

TICK_NS = 1_000_000_000 // os.sysconf("SC_CLK_TCK")


class Machine:
    """A /proc of plain files: processes with a parent, own ticks and ticks of children they have reaped."""

    def __init__(self, root):
        self.root, self.clocks = root, {}
        self.stat("cpu  100 0 0 1000 0 0 0 0 0 0")

    def stat(self, *lines):
        (self.root / "stat").write_text("\n".join([*lines, "intr 1"]) + "\n")

    def process(self, pid, parent, own=0, reaped=0, processor=0, threads=None):
        folder = self.root / str(pid)
        folder.mkdir(exist_ok=True)
        (folder / "stat").write_text(self._line(pid, parent, own, reaped, processor))
        self.clocks[pid] = own * TICK_NS
        for number, (ticks, on) in (threads or {}).items():
            task = folder / "task" / str(number)
            task.mkdir(parents=True, exist_ok=True)
            (task / "stat").write_text(self._line(number, parent, ticks, 0, on))

    def _line(self, pid, parent, own, reaped, processor):
        words = ["0"] * 50
        words[0], words[1], words[11], words[13], words[36] = "S", str(parent), str(own), str(reaped), str(processor)
        words[19] = str(1000 + pid)
        return f"{pid} (a (strange) name) {' '.join(words)}"

    def end(self, pid):
        (self.root / str(pid) / "stat").unlink()
        (self.root / str(pid)).rmdir()
        del self.clocks[pid]

    def account(self, packages=None):
        return FamilyAccount(str(self.root), packages or {}, self.clocks.get)


def test_a_family_is_the_command_and_what_it_started(tmp_path):
    machine = Machine(tmp_path)
    for pid, parent in ((1, 0), (10, 1), (11, 10), (12, 11), (20, 1)):
        machine.process(pid, parent, own=pid)
    account = machine.account()
    assert account.members(10, 0) == {10, 11, 12}
    (own,), (busy,) = account.look(10, 1)
    assert own == pytest.approx((10 + 11 + 12) * TICK_NS / 1e9)
    assert busy == pytest.approx(100 * TICK_NS / 1e9)
    machine.process(13, 12, own=7)
    assert 13 not in account.members(10, SCAN_NS // 2)  # all of /proc at most once a second
    assert 13 in account.members(10, 2 * SCAN_NS)


def test_time_of_ended_children_stays(tmp_path):
    machine = Machine(tmp_path)
    machine.process(10, 1, own=5)
    machine.process(11, 10, own=40)
    machine.process(12, 1000, own=0)
    account = machine.account()
    assert account.look(10, 0)[0][0] == pytest.approx(45 * TICK_NS / 1e9)
    machine.end(11)
    machine.process(10, 1, own=6, reaped=42)  # its parent has waited for it
    assert account.look(10, 1)[0][0] == pytest.approx(48 * TICK_NS / 1e9)


def test_time_of_a_daemon_that_left_the_family_stays(tmp_path):
    machine = Machine(tmp_path)
    machine.process(10, 1, own=5)
    machine.process(11, 10, own=40)
    account = machine.account()
    account.look(10, 0)
    machine.process(11, 1, own=50)  # its parent is init now, and it still counts
    assert account.look(10, 1)[0][0] == pytest.approx(55 * TICK_NS / 1e9)
    machine.end(11)
    assert account.look(10, 2)[0][0] == pytest.approx(55 * TICK_NS / 1e9)


def test_a_reused_number_is_another_process(tmp_path):
    machine = Machine(tmp_path)
    machine.process(10, 1, own=5)
    account = machine.account()
    account.look(10, 0)
    path = tmp_path / "10" / "stat"
    path.write_text(path.read_text().replace("1010", "9999"))
    machine.clocks[10] = 10**12
    assert account.look(10, 1)[0][0] == pytest.approx(5 * TICK_NS / 1e9)


def test_threads_are_counted_on_their_package(tmp_path):
    """Two packages of one processor each: a thread of 30 ticks on the second one, of 10 on the first."""
    machine = Machine(tmp_path)
    machine.stat("cpu  300 0 0 0 0 0 0 0", "cpu0 100 0 0 0 0 0 0 0", "cpu1 200 0 0 0 0 0 0 0")
    machine.process(10, 1, own=40, threads={10: (10, 0), 11: (30, 1)})
    own, busy = machine.account({0: 0, 1: 1}).look(10, 0)
    assert own == [pytest.approx(10 * TICK_NS / 1e9), pytest.approx(30 * TICK_NS / 1e9)]
    assert busy == [pytest.approx(100 * TICK_NS / 1e9), pytest.approx(200 * TICK_NS / 1e9)]


def test_packages_are_those_of_the_kernel(tmp_path):
    for processor, package in ((0, 3), (1, 3), (2, 7)):
        folder = tmp_path / f"cpu{processor}" / "topology"
        folder.mkdir(parents=True)
        (folder / "physical_package_id").write_text(f"{package}\n")
    assert machine_packages(tmp_path) == {0: 0, 1: 0, 2: 1}


def test_without_proc_nothing_is_said(tmp_path):
    assert machine_s(str(tmp_path), {}, 1) is None
    assert FamilyAccount(str(tmp_path), {}).look(1, 0) is None
    assert 0 < reserved_part() <= 1


def test_the_real_clock_of_a_child_and_its_child():
    """A shell whose child burns CPU time: the family's clock goes on, and nothing is lost when the child has ended."""
    burn = "import time\nwhile time.process_time() < 0.3: pass"
    child = subprocess.Popen(["sh", "-c", f'{sys.executable} -c "{burn}"; read line'], stdin=subprocess.PIPE)
    try:
        account, seen = FamilyAccount(packages={}), [0.0]
        deadline = time.monotonic() + 60
        while seen[-1] < 0.25 and time.monotonic() < deadline:
            seen.append(account.look(child.pid, time.monotonic_ns())[0][0])
            time.sleep(0.01)
        assert seen[-1] >= 0.25
        assert seen == sorted(seen)
        assert process_ns(child.pid) is not None
    finally:
        child.communicate(b"\n")
    assert account.look(child.pid, time.monotonic_ns())[0][0] >= seen[-1]


def test_the_sampler_of_a_program_is_no_part_of_it(tmp_path):
    machine = Machine(tmp_path)
    for pid, parent in ((1, 0), (10, 1), (11, 10), (12, 11), (13, 10)):
        machine.process(pid, parent, own=pid)
    account = FamilyAccount(str(tmp_path), {}, machine.clocks.get, without=11)
    assert account.members(10, 0) == {10, 13}
