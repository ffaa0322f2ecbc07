// Type-checks the page's JavaScript (`tsc --checkJs`): names, imports and exports, number of arguments.
// Not reported: fields that constructors set with Object.assign, which tsc cannot see (2339, 2551, 2740), and numbers, dates
// and texts that JavaScript converts (2322, 2345, 2362, 2363).
import { dirname } from "node:path";
import { fileURLToPath } from "node:url";
import ts from "typescript";

const NOT_REPORTED = new Set([2339, 2551, 2740, 2322, 2345, 2362, 2363]);
const folder = dirname(fileURLToPath(import.meta.url));
const { config } = ts.readConfigFile(`${folder}/tsconfig.json`, ts.sys.readFile);
const { fileNames, options } = ts.parseJsonConfigFileContent(config, ts.sys, folder);
const problems = ts
  .getPreEmitDiagnostics(ts.createProgram(fileNames, options))
  .filter((problem) => !NOT_REPORTED.has(problem.code));
if (problems.length) {
  const host = { getCanonicalFileName: (name) => name, getCurrentDirectory: ts.sys.getCurrentDirectory, getNewLine: () => "\n" };
  console.error(ts.formatDiagnostics(problems, host));
}
console.log(`page: ${fileNames.length} files, ${problems.length} problems`);
process.exit(problems.length || !fileNames.length ? 1 : 0);
