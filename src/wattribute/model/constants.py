"""Figures and words that several packages share. No imports: the sampler's process loads this."""

DEAD_S = 0.1  # a counter that stood still this long, and three of its periods, is dead
POWER_SPAN_S = 0.2  # power from a counter is a mean over at least this long: update times jitter
IDLE = "(idle)"  # the name of what was metered while no user was in a span
OTHERS = "other processes"  # the name of what a device used for programs that are not the command
STATIC = "static"  # the name of a device's floor x time, where that is a separate row
# signals of a live recording: CPU seconds of the command with all its children, of everything else on the machine
# (per package where there are several), and what part of a GPU's work was the command's
CPU_TIME, CPU_LOAD = "cpu time", "cpu load"  # of one thread, which recorded them about itself
COMMAND_CPU_TIME, OTHERS_CPU_TIME = "cpu time of the command", "cpu time of other processes"
COMMAND_SHARE = "command share"  # of a GPU's busy time
COMMAND_SLICES = "command slices"  # of a GPU: of its MIG slices, or of the processes that share its time
