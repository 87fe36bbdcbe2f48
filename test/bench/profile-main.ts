/**
 * `npm run profile -- <benchmark> …`: the benchmark with Node's profiler in each of its Node processes and threads, the server's
 * included, and then a flame graph of them all (a page to open in a browser) beside the profiles themselves, which the tools of
 * browsers read too. What other programs cost (git, stages, the broker) is no part of it.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { renderFlameGraph } from './flame-graph.ts';
import { longest, readProfiles } from './profiles.ts';

const BENCH = fileURLToPath(new URL('./main.ts', import.meta.url));
const CHECKOUT = fileURLToPath(new URL('../..', import.meta.url)).replace(/\/$/, '');
const LONGEST = 25;

const wanted = process.argv.slice(2);
if (wanted.length === 0) {
  console.error('name a benchmark, as in: npm run profile -- runs');
  process.exit(2);
}
const folder = join(CHECKOUT, '.profiles', wanted.join('-').replaceAll(/[^\w-]/g, ''));
rmSync(folder, { recursive: true, force: true });
mkdirSync(folder, { recursive: true });
const options = [
  process.env['NODE_OPTIONS'] ?? '',
  '--cpu-prof',
  `--cpu-prof-dir=${JSON.stringify(folder)}`,
  `--import=${JSON.stringify(new URL('./profiled-process.ts', import.meta.url).href)}`,
];
const bench = spawn(process.execPath, [BENCH, ...wanted], {
  env: { ...process.env, NODE_OPTIONS: options.join(' ').trim(), PENSTOCK_PROFILES: folder },
  stdio: 'inherit',
});
const [code] = (await once(bench, 'exit')) as [number | null];
if (code !== 0) process.exit(code ?? 1);
const root = readProfiles(folder, CHECKOUT);
for (const each of [...root.children.values()].toSorted((a, b) => b.totalMs - a.totalMs)) {
  console.log(`\n${each.name}: ${each.totalMs.toFixed(0)} ms`);
  for (const { name, place, selfMs } of longest(each, LONGEST))
    console.log(
      `  ${selfMs.toFixed(0).padStart(7)} ms ${((100 * selfMs) / each.totalMs).toFixed(1).padStart(5)} %  ${name} ${place}`,
    );
}
const page = join(folder, 'flame-graph.html');
writeFileSync(page, renderFlameGraph(wanted.join(', '), root));
console.log(`\nThe flame graph: ${page}`);
