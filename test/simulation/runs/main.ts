/**
 * The command of the simulation:
 *   npm run simulate                                  2,000 seeds
 *   npm run simulate -- --seeds 20000 [--from 5000]   that many, from that one on
 *   npm run simulate -- --seed 1234 [--trace]         one, with everything that happens in it
 *   --mutation <name>                                 with a rule broken on purpose
 */
import { availableParallelism } from 'node:os';
import { parseArgs } from 'node:util';
import { runBatch } from './batch.ts';
import { expectedMarks, SEEDS_DEFAULT } from './expected-marks.ts';
import { isMutation, mutations } from '../world/mutations.ts';
import { report, simulate } from './simulate.ts';

const { values } = parseArgs({
  options: {
    seed: { type: 'string' },
    seeds: { type: 'string' },
    from: { type: 'string' },
    trace: { type: 'boolean' },
    workers: { type: 'string' },
    mutation: { type: 'string' },
  },
});
const named = values.mutation;
const mutation = named === undefined || !isMutation(named) ? undefined : named;
if (named !== mutation) {
  console.error(
    `there is no mutation '${named ?? ''}': name one of\n${Object.entries(mutations)
      .map(([name, rule]) => `  ${name.padEnd(30)} ${rule}`)
      .join('\n')}`,
  );
  process.exit(2);
}

function numberOf(name: 'seed' | 'seeds' | 'from' | 'workers', otherwise: number): number {
  const text = values[name];
  const number = text === undefined ? otherwise : Number(text);
  if (Number.isSafeInteger(number) && number >= 0) return number;
  console.error(`--${name} is '${text ?? ''}', which is no whole number`);
  process.exit(2);
}

process.exitCode = values.seed === undefined ? await runMany() : await runOne();

async function runOne(): Promise<number> {
  const outcome = await simulate(numberOf('seed', 1), { mutation, traced: true });
  console.log(report(outcome, values.trace === true ? Number.POSITIVE_INFINITY : 60));
  if (values.trace === true) {
    if (outcome.failure === undefined) console.log(outcome.lines.join('\n'));
    console.log(`its world: ${JSON.stringify(outcome.profile)}`);
  }
  return outcome.failure === undefined ? 0 : 1;
}

async function runMany(): Promise<number> {
  const seeds = numberOf('seeds', SEEDS_DEFAULT);
  const startedAt = performance.now();
  const result = await runBatch({
    from: numberOf('from', 1),
    seeds,
    workers: Math.max(1, numberOf('workers', availableParallelism())),
    failuresMax: 3,
    mutation,
  });
  const seconds = (performance.now() - startedAt) / 1000;
  for (const failure of result.failures) console.log(`${failure.report}\n`);
  console.log(
    [...result.marks.counts]
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([name, count]) => `${String(count).padStart(9)}  ${name}`)
      .join('\n'),
  );
  console.log(
    `${result.seeds} seeds in ${seconds.toFixed(1)} s: ${(result.seeds / seconds).toFixed(0)} seeds/s, ${(result.steps / result.seeds).toFixed(0)} steps and ${(result.virtualMs / result.seeds / 1000).toFixed(0)} s of its own time each`,
  );
  const missing = expectedMarks.filter((name) => !result.marks.counts.has(name));
  if (missing.length > 0) console.log(`never happened: ${missing.join(', ')}`);
  console.log(
    result.failures.length === 0
      ? 'nothing found'
      : `${result.failures.length} seeds failed: ${result.failures.map(({ seed }) => seed).join(', ')}`,
  );
  return result.failures.length > 0 || (missing.length > 0 && seeds >= SEEDS_DEFAULT) ? 1 : 0;
}
