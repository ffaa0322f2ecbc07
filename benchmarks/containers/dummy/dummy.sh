#!/bin/sh
# Does nothing for SECONDS_LONG: what is measured is the machine's idle power and the meters' own cost.
set -eu
mkdir -p /results
echo "idle for $SECONDS_LONG s"
sleep "$SECONDS_LONG"
echo "{\"benchmark\": \"dummy\", \"time\": $SECONDS_LONG}" > /results/metrics.json
