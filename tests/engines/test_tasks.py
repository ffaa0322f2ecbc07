"""Work cut into tasks: everything once, nothing too large that can be cut, results in the numbers of the whole plan."""

import pytest

import wattribute
from wattribute.attribution import join
from wattribute.attribution.rollup import grouping
from wattribute.engines.tasks import Large, Task, batches, cut
from wattribute.engines.work import Work, reduce, solve
from wattribute.model import Question


def work(trace, **asked):
    recording = wattribute.read(trace)
    plan = join.plan(recording, Question(**asked))
    return Work(recording, plan, join.groups(plan))


@pytest.mark.parametrize("slots", [1, 2, 7, 1000])
def test_every_device_and_location_is_in_one_task(trace, slots):
    whole = work(trace, of=["kernels", "host"])
    devices, places = [], []
    for one in cut(whole, slots):
        task = one.task if isinstance(one, Large) else one
        devices += task.sources
        assert task.plan.sources == tuple(whole.plan.sources[row] for row in task.sources)
        found = join.users(task.plan, range(len(task.sources)))
        if isinstance(one, Large):
            assert [location for share in one.shares for location in share] == found
            assert {location for share in one.asked for location in share} <= set(found)
        places += found
    assert sorted(devices) == list(range(len(whole.plan.sources)))
    assert sorted(places) == sorted(user for group in whole.groups for user in join.users(whole.plan, group))


def test_groups_stay_whole_unless_one_is_most_of_the_work(trace):
    whole = work(trace, of="host", metric="ZONE")  # two packages, two threads each
    assert [type(one) for one in cut(whole, 1)] == [Task, Task]
    assert [type(one) for one in cut(whole, 2)] == [Task, Task]
    assert [len(one.shares) for one in cut(whole, 100)] == [2, 2]
    assert [type(one) for one in cut(whole._replace(groups=whole.groups[:1]), 2)] == [Large]


def test_small_groups_are_packed(trace):
    streams = work(trace, metric="energy_count")  # four GPUs with a stream each
    assert [len(one.groups) for one in cut(streams._replace(groups=streams.groups * 8), 1)] == [8, 8, 8, 8]


def test_results_are_in_the_numbers_of_the_whole_plan(trace):
    whole = work(trace)
    how = grouping(whole.recording, whole.plan)
    for one in cut(whole, 1):
        assert isinstance(one, Task)
        own = Work(whole.recording, one.plan, one.groups)
        (sums,) = reduce(own, [solve(own, group) for group in one.groups], how.of(one.sources), one.sources)
        expected = set(one.sources)
        assert {book.source for book in sums.books} == expected
        assert set(sums.devices) <= expected
        assert set(sums.keys["source"].tolist()) <= expected


@pytest.mark.parametrize(("most", "count"), [(1, 1), (1000, 4)])
def test_batches_keep_together_what_stands_together(trace, most, count):
    recording = wattribute.read(trace)
    locations = list(recording.spans.locations())
    pairs = [locations[at : at + 2] for at in range(0, len(locations), 2)]
    made = batches(recording, pairs, most)
    assert [location for batch in made for location in batch] == locations
    assert len(made) == count
    assert all(any(set(pair) <= set(batch) for batch in made) for pair in pairs)
