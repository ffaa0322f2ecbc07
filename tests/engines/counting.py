"""An Arkouda client of NumPy arrays that counts messages: each method below is one command to a real server.

What a real client sends was not checked. Assumed: a binary operation, a slice, a gather, a filter, an assignment and an
aggregation are a command each, ``GroupBy`` three.
"""

from collections import Counter

import numpy as np


class Array:
    """An array "on the server"."""

    def __init__(self, client, values):
        self.client, self.values = client, np.asarray(values)

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
        client.commands["group"] += 3
        self.client = client
        unique, self.which = np.unique(keys, return_inverse=True)
        self.unique_keys = Array(client, unique)

    def broadcast(self, values):
        return Array(self.client, self.client.said("broadcast", values.values[self.which]))

    def sum(self, column):
        values = column.values.astype(np.int64) if column.values.dtype.kind == "b" else column.values
        sums = np.zeros(self.unique_keys.size, values.dtype)
        np.add.at(sums, self.which, values)
        return self.unique_keys, Array(self.client, self.client.said("sum", sums))
