"""An Arkouda client of NumPy arrays that counts messages as the client 2026.02.27 sends them.

A binary operation, a slice, a gather, a filter and an assignment are a command each, ``GroupBy`` and a sum of groups
two, and an array that nobody holds any more is deleted by one.
"""

from collections import Counter

import numpy as np


class Array:
    """An array "on the server"."""

    def __init__(self, client, values):
        self.client, self.values = client, np.asarray(values)

    def __del__(self):
        self.client.commands["delete"] += 1

    size = property(lambda self: self.values.size)
    dtype = property(lambda self: self.values.dtype)

    def to_ndarray(self):
        return self.client.said("get", self.values)

    def __getitem__(self, at):
        kind = "slice" if isinstance(at, slice) else "gather"
        at = at.values if isinstance(at, Array) else at
        return Array(self.client, self.client.said(kind, self.values[at].copy()))

    def __setitem__(self, at, values):
        self.values[at.values] = self.client.said("assign", values.values)

    def __invert__(self):
        return Array(self.client, self.client.said("binary", ~self.values))


def _binary(name):
    def operation(self, other):
        other = other.values if isinstance(other, Array) else other
        return Array(self.client, self.client.said("binary", getattr(self.values, name)(other)))

    return operation


for _name in [
    "add",
    "sub",
    "mul",
    "mod",
    "floordiv",
    "and",
    "or",
    "eq",
    "ne",
    "lt",
    "gt",
    "le",
    "ge",
    "radd",
    "rsub",
    "rmul",
]:
    setattr(Array, f"__{_name}__", _binary(f"__{_name}__"))


class Client:
    """So much of the module ``arkouda`` as ``engines.arkouda`` uses."""

    def __init__(self, free_bytes=10**12):
        self.commands = Counter()
        self.free_bytes = free_bytes

    def said(self, kind, value):
        self.commands[kind] += 1
        return value

    def _array(self, kind, values):
        return Array(self, self.said(kind, values))

    def array(self, values):
        return self._array("put", values)

    def arange(self, count):
        return self._array("arange", np.arange(count))

    def zeros(self, count, dtype):
        return self._array("zeros", np.zeros(count, dtype))

    def where(self, condition, yes, no):
        yes, no = (one.values if isinstance(one, Array) else one for one in (yes, no))
        return self._array("where", np.where(condition.values, yes, no))

    def concatenate(self, arrays):
        assert any(one.size for one in arrays)  # as the real one, which fails
        return self._array("join", np.concatenate([one.values for one in arrays]))

    def cumsum(self, array):
        return self._array("cumsum", np.cumsum(array.values))

    def searchsorted(self, sorted_, values, side):
        return self._array("search", np.searchsorted(sorted_.values, values.values, side))

    def coargsort(self, arrays):
        return self._array("sort", np.lexsort([one.values for one in reversed(arrays)]))

    def any(self, mask):
        return self.said("any", bool(mask.values.any()))

    def get_mem_avail(self, unit):
        return self.said("memory", self.free_bytes)

    def GroupBy(self, keys):
        return Groups(self, keys.values)


class Groups:
    def __init__(self, client, keys):
        client.commands.update({"group": 2, "delete": 3})  # its permutation, segments and places
        self.client = client
        unique, self.which = np.unique(keys, return_inverse=True)
        self.unique_keys = Array(client, unique)

    def broadcast(self, values):
        return Array(self.client, self.client.said("broadcast", values.values[self.which]))

    def sum(self, column):
        values = column.values.astype(np.int64) if column.values.dtype.kind == "b" else column.values
        sums = np.zeros(self.unique_keys.size, values.dtype)
        np.add.at(sums, self.which, values)
        self.client.commands.update({"gather": 1, "delete": 1})  # of the values by group
        return self.unique_keys, Array(self.client, self.client.said("sum", sums))
