"""Rows of the files that a measured program writes: regions, stack samples, calls.

Beside the regions' files lies COUNTERS, written by the sampler: counters that are so quick that the program reads them
at the edges of its regions, and a watch at its looks, one per line: the path of a file, or PERF_ADDRESS and what opens
an event of the kernel. Imported while a program under a profile starts, so nothing heavier than ``struct``.
"""

import struct

REGION = struct.Struct("<qqII")  # start, end (0 while open; monotonic ns), frame, lane
REGION_RESUMED = 1 << 31  # in frame: goes on with an earlier piece, not another call
COUNT = struct.Struct("<qdII")  # when (monotonic ns), how many, unit and REGION_COUNT, lane: a row among the regions
REGION_COUNT = 1 << 30  # in frame: the row is a count
READING = struct.Struct("<qqII")  # when (monotonic ns), a counter's value, its number and REGION_READING, 0
REGION_READING = 1 << 29  # in frame: the row is a reading

COUNTERS = "counters"
PERF_ADDRESS = "perf:"  # then type, config and cpu; such a counter counts from when it was opened

STACK_SAMPLE = struct.Struct("<qqII")  # since (monotonic ns), CPU time of the thread (ns, −1: unknown), lane, stack
NO_STACK = 0  # the thread is gone, or the mode has no stacks
STACK_RUNS = 1 << 30  # in stack: the thread was on a CPU then (of a watch only)
STACK_WAITS = 1 << 29  # … or waited for one; neither: it was blocked
FIRST_LANE = 1 << 20  # of a watch: the tracer's are below
MEMORY_LANE = 0xFFFFFFFF  # in the place of a lane: the row holds resident bytes instead of CPU time
NATIVE_LANE = 0xFFFFFFFE  # … CPU time of threads without a Python stack, and in stack the lane that it counts for
COUNTER_LANE = 0xFFFFFFFD  # … the value of a quick energy counter, and in stack its number
DELAY_LANE = 1 << 30  # in lane: the row holds how long the thread has waited for a CPU (ns)

CALL = struct.Struct("<qII")  # when (monotonic ns), frame and flags, lane
CALL_LEAVE = 1 << 31  # in frame: the end of a call
CALL_RESUMED = 1 << 30  # in frame: a generator or coroutine goes on, it is not another call
