// Says how each scenario of one run of the suite ended, and whether that is what the baseline says.
// usage: node verdict.mjs SET FOLDER BASELINE      (FOLDER holds the suite's output, `log`, and its checks.json files)
//
// A scenario passes if it made a check and none failed; a warning is no failure of a server. A line of the baseline is
// `SET SCENARIO REASON`: the scenario is expected to fail, or, if the reason begins with "varies:", may.
import fs from 'node:fs';
import path from 'node:path';

const [set, folder, baselineFile] = process.argv.slice(2);
// How many scenarios each set has: fewer means that the suite stopped half-way.
const COUNTS = { '0.1.16': 32, '2025-11-25': 33, '2026-07-28': 50 };

const expected = new Map(fs.readFileSync(baselineFile, 'utf8').split('\n')
  .map(line => /^(\S+) (\S+) (\S.*)$/.exec(line)).filter(m => m?.[1] === set).map(m => [m[2], m[3]]));

const log = fs.readFileSync(path.join(folder, 'log'), 'utf8').replace(/\x1b\[[0-9;]*m/g, '');
// The totals that the suite printed: a scenario that threw recorded no checks.
const totals = new Map([...log.matchAll(/^[✓✗] (\S+): (\d+) passed, (\d+) failed/gm)].map(m => [m[1], { passed: +m[2], failed: +m[3] }]));
const checks = new Map();
for (const file of fs.readdirSync(folder, { recursive: true }).map(String)) {
  if (path.basename(file) !== 'checks.json') continue;
  const name = path.dirname(file).replace(/^server-/, '').replace(/-\d{4}-\d\d-\d\dT[\d-]+Z?$/, '');
  checks.set(name, JSON.parse(fs.readFileSync(path.join(folder, file), 'utf8')));
}

const outcomes = new Map();
for (const name of new Set([...totals.keys(), ...checks.keys()])) {
  const recorded = checks.get(name) ?? [];
  const failures = recorded.filter(c => c.status === 'FAILURE');
  const total = totals.get(name) ?? { passed: 0, failed: 0 };
  const made = total.passed > 0 || recorded.some(c => c.status === 'SUCCESS' || c.status === 'WARNING');
  const reasons = failures.map(c => `${c.id}: ${String(c.errorMessage ?? c.description ?? '').split('\n')[0].slice(0, 200)}`);
  if (total.failed > failures.length) reasons.push(thrown(name));
  if (!made && reasons.length === 0) reasons.push('made no check');
  outcomes.set(name, reasons);
}

const wrong = [];
let passed = 0;
for (const [name, reasons] of [...outcomes].sort()) {
  const fails = reasons.length > 0;
  if (!fails) passed++;
  console.log(`${fails ? 'FAIL' : 'PASS'} ${set} ${name}${fails ? ': ' + (expected.has(name) ? `(expected) ${expected.get(name)}` : reasons.join(' | ')) : ''}`);
  if (fails && !expected.has(name)) wrong.push(`${name} fails and is not in the baseline`);
  if (!fails && expected.get(name)?.startsWith('varies:') === false) wrong.push(`${name} passes: take it out of the baseline`);
}
for (const name of expected.keys()) if (!outcomes.has(name)) wrong.push(`${name} is in the baseline and did not run`);
if (outcomes.size !== COUNTS[set]) wrong.push(`${outcomes.size} scenarios ran of ${COUNTS[set]}`);
if (outcomes.size === 0) console.log(log.slice(-2000));
for (const what of wrong) console.log(`UNEXPECTED ${set} ${what}`);
console.log(`${set}: ${passed} of ${outcomes.size} pass, ${expected.size} expected to fail, ${wrong.length} unexpected`);
process.exitCode = wrong.length ? 1 : 0;

function thrown(name) {
  const escaped = name.replace(/[/.]/g, '\\$&');
  return new RegExp(`Failed to run scenario ${escaped}: (.*)`).exec(log)?.[1]?.slice(0, 200) ?? 'it ended without a check';
}
