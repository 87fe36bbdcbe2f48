/** `npm run deliveries -- [--count N] [--seed S]`: so many deliveries, 30 % of them repeated, while everything is killed. */
import { parseArgs } from 'node:util';
import { deliver } from './webhook-deliveries.ts';

const write = (line: string): void => void process.stdout.write(`${line}\n`);
const { values } = parseArgs({ options: { count: { type: 'string', default: '10000' }, seed: { type: 'string' } } });
const seed = values.seed === undefined ? Math.floor(Math.random() * 1_000_000) : Number(values.seed);
try {
  const report = await deliver({ count: Number(values.count), seed, killEveryMs: 5_000, say: (line) => write(line) });
  write(
    `seed ${seed}: ${report.distinct} runs of ${report.distinct + report.repetitions} deliveries, ${JSON.stringify(report.kills)} killed, ${report.retried} sent again, ${report.seconds} s`,
  );
} catch (error) {
  write(`seed ${seed} failed; replay it with: npm run deliveries -- --count ${values.count} --seed ${seed}`);
  write(error instanceof Error ? (error.stack ?? error.message) : String(error));
  process.exit(1);
}
process.exit(0);
