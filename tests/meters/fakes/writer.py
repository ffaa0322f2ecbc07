"""Writes a fake counter folder: ``writer.py once|on PLAN``; "on" goes on until it is terminated."""

import json
import math
import os
import sys
import time


def energy_j(wave, s):
    low = wave["high_w"] if wave["low_w"] is None else wave["low_w"]
    whole, on = math.floor(s / wave["period_s"]), wave["duty"] * wave["period_s"]
    phase = s - whole * wave["period_s"]
    part = wave["high_w"] * min(phase, on) + low * max(phase - on, 0)
    return whole * (wave["high_w"] * on + low * (wave["period_s"] - on)) + part


def power_w(wave, s):
    low = wave["high_w"] if wave["low_w"] is None else wave["low_w"]
    return wave["high_w"] if (s / wave["period_s"]) % 1 < wave["duty"] else low


class Files:
    """Each file is rewritten in place by one write, as sysfs gives one value to one read."""

    def __init__(self, root):
        self.root, self.open = root, {}

    def put(self, name, text):
        if name not in self.open:
            self.open[name] = os.open(f"{self.root}/{name}", os.O_WRONLY | os.O_CREAT, 0o644)
        os.pwrite(self.open[name], text.encode(), 0)


def powercap(plan, files, s):
    for name, wave in plan["files"].items():
        value = (plan["base"] + int(energy_j(plan["waves"][wave], s) * 1e6)) % plan["range"]
        files.put(name, f"{value:020d}\n")


def cray(plan, files, s):
    us = time.time_ns() // 1000
    for prefix, wave in plan["files"].items():
        files.put(f"{prefix}energy", f"{int(energy_j(plan['waves'][wave], s)):012d} J {us} us\n")
        files.put(f"{prefix}power", f"{int(power_w(plan['waves'][wave], s)):06d} W {us} us\n")
    files.put("freshness", f"{int(s / plan['period_s']):010d}\n")


def main():
    plan = json.loads(sys.argv[2])
    files, update = Files(plan["root"]), {"powercap": powercap, "cray": cray}[plan["what"]]
    period_ns = int(plan["period_s"] * 1e9)
    last_ns = 0
    while True:
        now_ns = time.monotonic_ns()
        update(plan, files, (now_ns - plan["start_ns"]) / 1e9)
        if not last_ns:
            print("written", flush=True)
        elif now_ns - last_ns > 2 * period_ns:  # when this sensor was late: a busy machine may let it wait
            with open(f"{plan['root']}/gaps", "a") as gaps:
                gaps.write(f"{last_ns} {now_ns}\n")
        last_ns = now_ns
        if sys.argv[1] == "once":
            return
        time.sleep((period_ns - (time.monotonic_ns() - plan["start_ns"]) % period_ns) / 1e9)


main()
