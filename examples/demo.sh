#!/bin/sh
# The main job end to end on built-in data: a trace is written, read, attributed, drawn; then a live run is measured.
# Ends by itself, needs no root, opens nothing. Results are kept in ./demo.
set -eu
here=$(dirname "$0")
out=demo
rm -rf "$out"
mkdir -p "$out"
say() { printf '\n\033[1m$ %s\033[0m\n' "$*"; "$@"; }

echo "1. A trace of a made-up job: 2 nodes, 4 ranks, 4 GPUs, energy counters (examples/make_trace.py)"
say python "$here/make_trace.py" "$out/trace"

echo; echo "2. What is in it?"
say wattribute info "$out/trace"

echo; echo "3. Whose joules? Rank 3 works longest, and the others' GPUs wait for it"
say wattribute attribute "$out/trace" --by host,device,frame --top 3
say wattribute attribute "$out/trace" --of host --metric powercap --by process,paradigm --top 6

echo; echo "4. Pictures"
say wattribute plot power "$out/trace" -o "$out/power.png"
say wattribute plot flame "$out/trace" -o "$out/flame.png"
say wattribute report "$out/trace" -o "$out/report.html"

echo; echo "5. And a program that runs now, measured or (without sensors) estimated"
say wattribute run --output "$out/run.watt" -- python -c 'sum(i * i for i in range(10_000_000))'

echo; echo "Kept in $out/: trace/ power.png flame.png report.html run.watt/   Next: wattribute view $out/trace"
