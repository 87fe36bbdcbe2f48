/**
 * From the trigger's request to the first line that its first stage writes, on an idle server, beside the floor of the same
 * run: one HTTP round trip to the same server, one acknowledged append, one stage through the executor.
 *
 * All of them in turn and each after the same rest: what has rested begins with cold caches, and a floor that is measured
 * back to back would be that of a busy machine. The very first trigger meets code that has never run; it is printed apart. So are those
 * of a server that has had many: V8 makes the code of a trigger fast by how often it has run.
 */
import { randomUUID } from 'node:crypto';
import { connectBus, openLog, ensureStreams } from '@penstock/bus';
import { ProcessExecutor } from '@penstock/executor';
import { startTestBroker } from '@penstock/testkit';
import { startServer, temporaryFolder, TRIGGER, type RunningServer } from '../support/server.ts';
import { once } from 'node:events';
import { watch, type FSWatcher } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as rest } from 'node:timers/promises';

const TRIES = 200;
/** As many as a few days of a small team. */
const AGED_BY = 1_000;
const AGED_TRIES = 100;
/** The run has ended by then, and what follows its end: its projection, its folder. */
const REST_MS = 30;

export async function benchTrigger(): Promise<string[]> {
  const folder = temporaryFolder('penstock-bench-');
  const server = await startServer();
  const append = await startAppends();
  const stage = await startStages(folder.path);
  const inTurn = async (name: string, tries: number): Promise<Tried[]> => {
    const tried: Tried[] = [];
    for (let index = 0; index < tries; index++) {
      const triggered = await triggerToStart(server, folder.path, `${name}${index}`);
      await rest(REST_MS);
      const request = await timed(async () => void (await (await fetch(`${server.url}/health`)).text()));
      await rest(REST_MS);
      const appended = await timed(append.once);
      await rest(REST_MS);
      tried.push({ triggered, request, append: appended, stage: await stage.once(`${name}-floor${index}`) });
      await rest(REST_MS);
    }
    return tried;
  };
  try {
    const [first, ...tried] = await inTurn('young', TRIES + 1);
    for (let index = 0; index < AGED_BY; index++) await triggerToStart(server, folder.path, `between${index}`);
    const aged = await inTurn('aged', AGED_TRIES);
    const again = await sameFile(server, folder.path);
    return [
      `trigger to the first stage's first act, idle: ${triggersLine(tried)}; the very first ${(first?.triggered ?? Number.NaN).toFixed(0)} ms`,
      `floor of the same run (request + append + stage): ${floorLine(tried)}`,
      `after ${AGED_BY} more triggers, ${AGED_TRIES} in turn as before: ${triggersLine(aged)}; floor ${floorLine(aged)}`,
      `one file of ${(again.length / 1024).toFixed(0)} KiB, triggered again and again as in use, ${AGED_TRIES} times after the first: ${quantilesLine(again.tries)}`,
    ];
  } finally {
    await stage.stop();
    await append.stop();
    await server.stop();
    folder.remove();
  }
}

/** Of one round: the trigger, and the parts of its floor. */
interface Tried {
  readonly triggered: number;
  readonly request: number;
  readonly append: number;
  readonly stage: number;
}

function triggersLine(tried: readonly Tried[]): string {
  return quantilesLine(tried.map((each) => each.triggered));
}

function quantilesLine(milliseconds: readonly number[]): string {
  return `p50 ${quantile(milliseconds, 0.5).toFixed(1)} ms, p99 ${quantile(milliseconds, 0.99).toFixed(1)} ms`;
}

function floorLine(tried: readonly Tried[]): string {
  const floors = tried.map((each) => each.request + each.append + each.stage);
  const medianOf = (part: keyof Tried): number =>
    quantile(
      tried.map((each) => each[part]),
      0.5,
    );
  const medians = (['request', 'append', 'stage'] as const).map((part) => medianOf(part).toFixed(1)).join(' + ');
  const ratio = (medianOf('triggered') / quantile(floors, 0.5)).toFixed(2);
  return `p50 ${quantile(floors, 0.5).toFixed(1)} ms (${medians}), p99 ${quantile(floors, 0.99).toFixed(1)} ms; ratio at p50 ${ratio}`;
}

async function timed(act: () => Promise<void>): Promise<number> {
  const start = performance.now();
  await act();
  return performance.now() - start;
}

/** The stage writes the time at which it began, by a shell that knows it without a fork; both clocks are the machine's. */
const stampTo = (file: string): string => `echo "$EPOCHREALTIME" > ${file}.part; mv ${file}.part ${file}`;

/** Returns when the run has ended. Each file is one that the server has never seen. */
async function triggerToStart(server: RunningServer, folder: string, name: string): Promise<number> {
  return await startOf(server, folder, name, fileOf(stampTo(join(folder, name))).join('\n'));
}

/** As files of repositories are: a stage, and two dozen after it, none of which runs this time. */
async function sameFile(server: RunningServer, folder: string): Promise<{ length: number; tries: number[] }> {
  const name = 'again';
  const others = Array.from({ length: 24 }, (_, index) => [
    `  deploy-${index}:`,
    '    after: [only]',
    "    when: run.trigger == 'schedule'",
    `    env: { TARGET: host-${index}.example.org, MODE: careful }`,
    '    run:',
    '      - echo "deploying to $TARGET, which uses $MODE" | tr a-z A-Z',
    '      - rsync --archive --delete build/ "deploy@$TARGET:/srv/www/"',
    `      - ssh "deploy@$TARGET" 'systemctl --user restart web'`,
  ]);
  const yaml = [...fileOf(stampTo(join(folder, name))), ...others.flat()].join('\n');
  const tries: number[] = [];
  for (let index = 0; index <= AGED_TRIES; index++) {
    tries.push(await startOf(server, folder, name, yaml));
    await rest(REST_MS);
  }
  return { length: yaml.length, tries: tries.slice(1) };
}

function fileOf(run: string): string[] {
  return ['pipeline:', '  name: latency', 'stages:', '  only:', '    shell: bash', `    run: '${run}'`];
}

/** `name`: of the file that the first stage writes. */
async function startOf(server: RunningServer, folder: string, name: string, yaml: string): Promise<number> {
  const written = watched(folder, name);
  const start = performance.timeOrigin + performance.now();
  const ended = server.graphql(TRIGGER, { yaml, waitSeconds: 60 });
  await written;
  await ended;
  return Number((await readFile(join(folder, name), 'utf8')).replace(',', '.')) * 1000 - start;
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

async function startAppends(): Promise<{ once(): Promise<void>; stop(): Promise<void> }> {
  const broker = await startTestBroker();
  const bus = await connectBus({ servers: broker.url, name: 'bench' });
  await ensureStreams(bus, { partitions: 1, journalBytesMax: 200 * 1024 ** 2, logsBytesMax: 200 * 1024 ** 2 });
  const log = openLog(bus, 0);
  let expectedSequence = 0;
  return {
    async once() {
      const result = await log.append(Buffer.alloc(1024), { commitId: randomUUID(), expectedSequence });
      if (result.ok) expectedSequence = result.sequence;
    },
    async stop() {
      await bus.close();
      await broker.stop();
    },
  };
}

async function startStages(folder: string): Promise<{ once(name: string): Promise<number>; stop(): Promise<void> }> {
  const executor = new ProcessExecutor();
  await executor.prewarm(1);
  return {
    async once(name) {
      const file = join(folder, name);
      const start = performance.timeOrigin + performance.now();
      const spec = {
        helperKey: 'bench',
        commands: [{ script: stampTo(file), bindings: {} }],
        env: {},
        shell: 'bash',
        cwd: '/',
        timeoutMs: 60_000,
      };
      await executor.start(spec, { write: () => undefined }).ended;
      return Number((await readFile(file, 'utf8')).replace(',', '.')) * 1000 - start;
    },
    stop: () => executor.close(),
  };
}

export function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}
