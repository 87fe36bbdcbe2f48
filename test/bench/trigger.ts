/**
 * From the trigger's request to the first line that its first stage writes, on an idle server, beside the floor of the same
 * run: one HTTP round trip to the same server, one acknowledged append, one stage through the executor.
 */
import { randomUUID } from 'node:crypto';
import { connectBus, openLog, ensureStreams } from '@penstock/bus';
import { ProcessExecutor } from '@penstock/executor';
import { startTestBroker } from '@penstock/testkit';
import { startServer, temporaryFolder, trigger } from '../support/server.ts';
import { once } from 'node:events';
import { watch, type FSWatcher } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';

const TRIES = 60;

export async function benchTrigger(): Promise<string[]> {
  const folder = temporaryFolder('penstock-bench-');
  const server = await startServer();
  try {
    const triggered: number[] = [];
    for (let index = 0; index < TRIES; index++) triggered.push(await triggerToStart(folder.path, `t${index}`, (yaml) => trigger(server, yaml)));
    const http: number[] = [];
    for (let index = 0; index < TRIES; index++) {
      const start = performance.now();
      await (await fetch(`${server.url}/health`)).text();
      http.push(performance.now() - start);
    }
    const append = await appendTimes();
    const stage = await stageTimes(folder.path);
    const floor = (share: number): number => quantile(http, share) + quantile(append, share) + quantile(stage, share);
    return [
      `trigger to the first stage's first act, idle: p50 ${quantile(triggered, 0.5).toFixed(1)} ms, p99 ${quantile(triggered, 0.99).toFixed(1)} ms`,
      `floor of the same run (request + append + stage): p50 ${floor(0.5).toFixed(1)} ms (${quantile(http, 0.5).toFixed(1)} + ${quantile(append, 0.5).toFixed(1)} + ${quantile(stage, 0.5).toFixed(1)}), p99 ${floor(0.99).toFixed(1)} ms; ratio at p50 ${(quantile(triggered, 0.5) / floor(0.5)).toFixed(2)}`,
    ];
  } finally {
    await server.stop();
    folder.remove();
  }
}

/** The stage writes the time at which it began, by a shell that knows it without a fork; both clocks are the machine's. */
const stampTo = (file: string): string => `echo "$EPOCHREALTIME" > ${file}.part; mv ${file}.part ${file}`;

async function triggerToStart(folder: string, name: string, send: (yaml: string) => Promise<unknown>): Promise<number> {
  const file = join(folder, name);
  const written = watched(folder, name);
  const yaml = ['pipeline:', '  name: latency', 'stages:', '  only:', '    shell: bash', `    run: '${stampTo(file)}'`].join('\n');
  const start = performance.timeOrigin + performance.now();
  await send(yaml);
  await written;
  return Number((await readFile(file, 'utf8')).replace(',', '.')) * 1000 - start;
}

async function watched(folder: string, name: string): Promise<void> {
  const watcher: FSWatcher = watch(folder);
  try {
    for (;;) {
      const [, changed] = (await once(watcher, 'change', { signal: AbortSignal.timeout(30_000) })) as [string, string];
      if (changed === name) return;
    }
  } finally {
    watcher.close();
  }
}

async function appendTimes(): Promise<number[]> {
  const broker = await startTestBroker();
  const bus = await connectBus({ servers: broker.url, name: 'bench' });
  await ensureStreams(bus, { partitions: 1, journalBytesMax: 200 * 1024 ** 2, logsBytesMax: 200 * 1024 ** 2 });
  const log = openLog(bus, 0);
  const times: number[] = [];
  let expectedSequence = 0;
  for (let index = 0; index < TRIES; index++) {
    const start = performance.now();
    const result = await log.append(Buffer.alloc(1024), { commitId: randomUUID(), expectedSequence });
    times.push(performance.now() - start);
    if (result.ok) expectedSequence = result.sequence;
  }
  await bus.close();
  await broker.stop();
  return times;
}

async function stageTimes(folder: string): Promise<number[]> {
  const executor = new ProcessExecutor();
  await executor.prewarm(1);
  const times: number[] = [];
  for (let index = 0; index < TRIES; index++) {
    const file = join(folder, `floor${index}`);
    const start = performance.timeOrigin + performance.now();
    const spec = { helperKey: 'bench', commands: [{ script: stampTo(file), bindings: {} }], env: {}, shell: 'bash', cwd: '/', timeoutMs: 60_000 };
    await executor.start(spec, { write: () => undefined }).ended;
    times.push(Number((await readFile(file, 'utf8')).replace(',', '.')) * 1000 - start);
  }
  await executor.close();
  return times;
}

export function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}
