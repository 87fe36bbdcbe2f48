/**
 * `npm run soak -- [--minutes N] [--clients N]`: a started product works for so long, and what it takes of the machine is printed all
 * along: memory, handles, threads, processes and everything on its disk. It fails where one of them grows after the warm-up, or where a
 * request failed. Deletions keep the number of runs the same, as retention does over months.
 */
import { setTimeout as pause } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { startServer, temporaryFolder } from '../support/server.ts';
import { SoakLoad } from './load.ts';
import { type Figure, FIGURES, isBytes, type Sample, takeSample } from './sample.ts';
import { trendOf } from './trends.ts';

const SAMPLES = 60;
const SAMPLE_MS_MIN = 2_000;
const SAMPLE_MS_MAX = 60_000;
/** Caches fill, heaps find their size, and the number of runs becomes what it stays. */
const WARM_UP_SHARE = 0.4;
const PROBLEMS_SHOWN = 5;

const write = (line: string): void => void process.stdout.write(`${line}\n`);
const names = Object.keys(FIGURES) as Figure[];
const { values } = parseArgs({
  options: { minutes: { type: 'string', default: '20' }, clients: { type: 'string', default: '4' } },
});
const [minutes, clients] = [Number(values.minutes), Number(values.clients)];
if (!(minutes >= 1 && minutes <= 7 * 24 * 60) || !(clients >= 1 && clients <= 64)) {
  write('give --minutes from 1 to 10080 and --clients from 1 to 64');
  process.exit(2);
}
process.exitCode = (await soak()) ? 0 : 1;

async function soak(): Promise<boolean> {
  const folder = temporaryFolder('penstock-soak-');
  const server = await startServer({ dataDir: folder.path, env: { SERVICE_LOG_LEVEL: 'warn' } });
  try {
    const totalMs = minutes * 60_000;
    const everyMs = Math.min(SAMPLE_MS_MAX, Math.max(SAMPLE_MS_MIN, totalMs / SAMPLES));
    write(`${minutes} minutes, ${clients} clients, process ${server.pid}, a sample every ${everyMs / 1_000} s`);
    const load = new SoakLoad(server, clients);
    const taken: { readonly ended: number; readonly sample: Sample }[] = [];
    for (const begin = performance.now(); performance.now() - begin < totalMs;) {
      await pause(everyMs);
      taken.push({ ended: load.ended, sample: takeSample(server) });
      if (server.child.exitCode !== null || server.child.signalCode !== null) throw new Error('the server has ended');
      const at = ((performance.now() - begin) / 60_000).toFixed(1);
      const latest = taken.at(-1)?.sample;
      write(
        `${at} min, ${load.ended} runs, ${load.problems.length} failed requests: ${names.map((name) => `${name} ${shown(name, latest?.[name])}`).join(', ')}`,
      );
    }
    await load.stop();
    return judged(taken, load.problems);
  } catch (error) {
    write(error instanceof Error ? (error.stack ?? error.message) : String(error));
    write(server.output().slice(-4_000));
    return false;
  } finally {
    await server.stop();
    folder.remove();
  }
}

function judged(
  taken: readonly { readonly ended: number; readonly sample: Sample }[],
  problems: readonly string[],
): boolean {
  const measured = taken.slice(Math.ceil(taken.length * WARM_UP_SHARE));
  const runs = (measured.at(-1)?.ended ?? 0) - (measured[0]?.ended ?? 0);
  write(`\nAfter the warm-up, over ${runs} runs: at first, at last, growth, and the growth that is allowed.`);
  let isSound = runs > 0;
  for (const name of names) {
    const trend = trendOf(
      measured.map(({ sample }) => sample[name]),
      FIGURES[name],
      runs,
    );
    const { first, last, growth, allowed, isGrowing } = trend;
    isSound &&= !isGrowing;
    const cells = [first, last, growth, allowed].map((value) => shown(name, value).padStart(9));
    write(`${name.padEnd(30)}${cells.join('')}${isGrowing ? '   GROWS' : ''}`);
  }
  for (const problem of problems.slice(0, PROBLEMS_SHOWN)) write(`failed: ${problem}`);
  if (problems.length > 0) write(`${problems.length} requests failed`);
  isSound &&= problems.length === 0;
  write(isSound ? 'nothing grows' : 'it is not sound');
  return isSound;
}

function shown(name: Figure, value: number | undefined): string {
  if (value === undefined) return '-';
  return isBytes(name) ? (value / 1024 ** 2).toFixed(1) : value.toFixed(0);
}
