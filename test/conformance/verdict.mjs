// Says how each scenario of one run of the suite ended, and whether that is what the baseline says.
// usage: node verdict.mjs SET FOLDER BASELINE      (FOLDER holds the suite's output, `log`, and its checks.json files)
//
// A scenario passes if it made a check and none failed; a warning is no failure of a server. What is expected to fail
// stands in the baseline, which says how it is written.
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

const outcomes = new Map(); // scenario: its failures
for (const name of new Set([...totals.keys(), ...checks.keys()])) {
  const recorded = checks.get(name) ?? [];
  const failures = recorded.filter(c => c.status === 'FAILURE')
    .map(c => ({ id: c.id, why: `${c.id}: ${String(c.errorMessage ?? c.description ?? '').split('\n')[0].slice(0, 200)}` }));
  const total = totals.get(name) ?? { passed: 0, failed: 0 };
  const made = total.passed > 0 || recorded.some(c => c.status === 'SUCCESS' || c.status === 'WARNING');
  if (total.failed > failures.length) failures.push({ why: thrown(name) });
  if (!made && failures.length === 0) failures.push({ why: 'it made no check' });
  outcomes.set(name, failures);
}

const wrong = [];
for (const [name, failures] of [...outcomes].sort()) {
  const surprises = failures.filter(f => !expected.has(name) && !expected.has(`${name}/${f.id}`));
  const verdict = failures.length === 0 ? 'PASS' : surprises.length === 0 ? 'EXPECTED' : 'FAIL';
  const why = verdict === 'EXPECTED' ? [expected.get(name) ?? expected.get(`${name}/${failures[0].id}`)] : failures.map(f => f.why);
  console.log(`${verdict} ${set} ${name}${why.length ? ': ' + why.join(' | ') : ''}`);
  wrong.push(...surprises.map(f => `${name} fails and is not in the baseline: ${f.why}`));
}
for (const [key, reason] of expected) {
  const [name, check] = key.split('/');
  const failures = outcomes.get(name);
  if (!failures) wrong.push(`${key} is in the baseline and did not run`);
  else if (!failures.some(f => !check || f.id === check) && !reason.startsWith('varies:')) wrong.push(`${key} passes: take it out of the baseline`);
}
if (outcomes.size !== COUNTS[set]) wrong.push(`${outcomes.size} scenarios ran of ${COUNTS[set]}`);
if (outcomes.size === 0) console.log(log.slice(-2000));
for (const what of wrong) console.log(`UNEXPECTED ${set} ${what}`);
const passed = [...outcomes.values()].filter(failures => failures.length === 0).length;
console.log(`${set}: ${passed} of ${outcomes.size} pass, ${outcomes.size - passed} do not, ${wrong.length} unexpected`);
process.exitCode = wrong.length ? 1 : 0;

function thrown(name) {
  const escaped = name.replace(/[/.]/g, '\\$&');
  return new RegExp(`Failed to run scenario ${escaped}: (.*)`).exec(log)?.[1]?.slice(0, 200) ?? 'it ended without a check';
}
