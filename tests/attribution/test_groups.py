"""Devices that share a location are solved together: the components of a graph."""

from __future__ import annotations

from types import SimpleNamespace

from hypothesis import given
from hypothesis import strategies as st

from wattribute.attribution.bill import Division
from wattribute.attribution.join import groups


def components(sources):
    """By hand: grow each group until nothing joins it."""
    left, found = list(range(len(sources))), []
    while left:
        group = [left.pop(0)]
        for row in group:
            of, users = sources[row]
            near = [other for other in left if sources[other][0] == of and set(sources[other][1]) & set(users)]
            group += near
            left = [other for other in left if other not in near]
        found.append(tuple(sorted(group)))
    return sorted(found)


@given(st.lists(st.tuples(st.sampled_from(["host", "kernels"]), st.sets(st.integers(0, 12), max_size=3)), max_size=15))
def test_groups_are_connected_by_users(sources):
    plan = SimpleNamespace(
        sources=[SimpleNamespace(of=of, users=sorted(users), division=Division()) for of, users in sources]
    )
    assert groups(plan) == components(sources)
