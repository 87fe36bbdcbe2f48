/** `npm run crash -- [--seeds N] [--seed S]`: the crash test with many seeds, or with one. Stops at the first failure. */
import { parseArgs } from 'node:util';
import { crashOnce } from './crash.ts';

const { values } = parseArgs({ options: { seeds: { type: 'string', default: '200' }, seed: { type: 'string' } } });
const only = values.seed === undefined ? undefined : Number(values.seed);
const seeds = only === undefined ? Array.from({ length: Number(values.seeds) }, (_, index) => index + 1) : [only];

for (const seed of seeds) {
  // Every fifth without retries.
  const retry = seed % 5 !== 0;
  try {
    const report = await crashOnce({ seed, retry });
    console.log(
      `seed ${seed}${retry ? '' : ' (no retries)'}: killed after ${report.killedAfterMs} ms, ${report.finishedBefore} stages finished before, ${report.status}`,
    );
  } catch (error) {
    console.error(`seed ${seed} failed; replay it with: npm run crash -- --seed ${seed}`);
    console.error(error);
    process.exit(1);
  }
}
console.log(`${seeds.length} seeds passed`);
