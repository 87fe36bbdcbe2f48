/** What stages cost: through the executor, beside a plain forking shell and Node's spawn, and the way of a stage's output. */
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { chownSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  Chunker,
  defaultLimits,
  ProcessExecutor,
  SandboxExecutor,
  whySandboxLacks,
  type Executor,
  type OutputSink,
  type StageSpec,
} from '@penstock/executor';

const REPETITIONS = 3;
const RUNS = 200;
const STAGES_A_RUN = 3;
/** As many as the machine has processors. */
const AT_ONCE = 2;
const LINES = 3_000_000;
/** As long as a line of a build usually is. */
const LINE = 'x'.repeat(99);

const spec: StageSpec = {
  helperKey: 'bench',
  commands: [{ script: 'true', bindings: {} }],
  env: {},
  cwd: '/',
  timeoutMs: 60_000,
};
const silent: OutputSink = { write: () => {} };

export async function benchExecutor(): Promise<string[]> {
  const executor = new ProcessExecutor();
  const floor = Array.from({ length: AT_ONCE }, () => new PlainHelper());
  try {
    await executor.prewarm(AT_ONCE);
    const rates: Record<'executor' | 'floor' | 'spawn', number[]> = { executor: [], floor: [], spawn: [] };
    // Interleaved: the neighbours' load moves all three alike.
    for (let repetition = 0; repetition < REPETITIONS; repetition += 1) {
      rates.floor.push(await runsPerSecond((lane) => floor[lane]?.run() ?? Promise.resolve()));
      rates.executor.push(await runsPerSecond(async () => void (await executor.start(spec, silent).ended)));
      rates.spawn.push(
        await runsPerSecond(async () => void (await once(spawn('sh', ['-c', 'true'], { stdio: 'ignore' }), 'exit'))),
      );
    }
    const [own, plain, node] = [median(rates.executor), median(rates.floor), median(rates.spawn)];
    return [
      `three-stage runs, sh -c true, ${executor.isolation}: ${own.toFixed(0)} runs/s; plain forking sh ${plain.toFixed(0)} (${percent(own, plain)}), spawn per stage ${node.toFixed(0)}`,
      `first stage in a new helper: ${(await firstStageMs()).toFixed(1)} ms`,
      await outputRate(executor),
      ...(await sandboxRates()),
    ];
  } finally {
    for (const helper of floor) helper.end();
    await executor.close();
  }
}

function runsPerSecond(stage: (lane: number) => Promise<void>): Promise<number> {
  return perSecond(RUNS, async (lane) => {
    for (let done = 0; done < STAGES_A_RUN; done += 1) await stage(lane);
  });
}

async function perSecond(count: number, run: (lane: number) => Promise<void>): Promise<number> {
  let left = count;
  const began = performance.now();
  const lane = async (_: unknown, index: number): Promise<void> => {
    while (left > 0) {
      left -= 1;
      await run(index);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, lane));
  return (count * 1000) / (performance.now() - began);
}

/**
 * Runs of three stages as a runner has them, each run with folders of its own and all of one key: plain, in a sandbox, and each
 * stage by the bare tool.
 */
async function sandboxRates(): Promise<string[]> {
  const users = process.getuid?.() === 0 ? { first: 340_000, last: 340_000 } : undefined;
  const lacking = await whySandboxLacks(users);
  if (lacking !== null) return [`stages in a sandbox: not measured, ${lacking}`];
  const folder = mkdtempSync(join(tmpdir(), 'penstock-bench-'));
  const keep = join(folder, 'work');
  mkdirSync(keep, { mode: 0o711 });
  const limits = defaultLimits(folder);
  const plain = new ProcessExecutor({ covered: { cover: folder, keep }, limits });
  const sandbox = new SandboxExecutor({ layout: { keep, hidden: [], paths: [], users }, limits });
  const user = users === undefined ? undefined : { uid: users.first, gid: users.first };
  let runs = 0;
  const runOn = (executor: Executor) => async (): Promise<void> => {
    runs += 1;
    const run = { folder: join(keep, `run-${runs}`), temporary: join(keep, `.tmp-run-${runs}`) };
    for (const path of Object.values(run)) {
      mkdirSync(path, { mode: 0o700 });
      if (user !== undefined) chownSync(path, user.uid, user.gid);
    }
    for (let stage = 0; stage < STAGES_A_RUN; stage += 1)
      await executor.start({ ...spec, user, run, cwd: run.folder }, silent).ended;
  };
  const bare = async (): Promise<void> => {
    for (let stage = 0; stage < STAGES_A_RUN; stage += 1)
      await once(spawn('bwrap', [...BARE, 'sh', '-c', 'true'], { stdio: 'ignore' }), 'exit');
  };
  try {
    await Promise.all([plain.prewarm(AT_ONCE), sandbox.prewarm(AT_ONCE)]);
    const rates: Record<'plain' | 'sandbox' | 'bare', number[]> = { plain: [], sandbox: [], bare: [] };
    for (let repetition = 0; repetition < REPETITIONS; repetition += 1) {
      rates.plain.push(await perSecond(SANDBOX_RUNS, runOn(plain)));
      rates.sandbox.push(await perSecond(SANDBOX_RUNS, runOn(sandbox)));
      rates.bare.push(await perSecond(SANDBOX_RUNS, bare));
    }
    const [own, other, tool] = [median(rates.sandbox), median(rates.plain), median(rates.bare)];
    const first = await firstStageOf(() => new SandboxExecutor({ layout: { keep, hidden: [], paths: [], users } }));
    return [
      `three-stage runs, each with folders of its own, in a sandbox: ${own.toFixed(0)} runs/s; plain ${other.toFixed(0)} (a stage costs ${(other / own).toFixed(2)} times a plain one), bwrap per stage ${tool.toFixed(0)} (${(tool / own).toFixed(2)} times the bare tool)`,
      `first stage in a new sandbox, its network included: ${first.toFixed(1)} ms`,
    ];
  } finally {
    await Promise.all([plain.close(), sandbox.close()]);
    rmSync(folder, { recursive: true, force: true });
  }
}

const SANDBOX_RUNS = 60;
const BARE = ['--ro-bind', '/', '/', '--dev', '/dev', '--proc', '/proc', '--unshare-all'];

function firstStageMs(): Promise<number> {
  return firstStageOf(() => new ProcessExecutor());
}

async function firstStageOf(create: () => Executor): Promise<number> {
  const executor = create();
  const began = performance.now();
  await executor.start(spec, silent).ended;
  const took = performance.now() - began;
  await executor.close();
  return took;
}

/** Lines of one stage, by its pipe and through the chunker, nothing behind it; beside them the same bytes unread. */
async function outputRate(executor: ProcessExecutor): Promise<string> {
  const script = `yes ${LINE} | head -n ${LINES}`;
  const timed = async (sink: OutputSink): Promise<number> => {
    const began = performance.now();
    await executor.start({ ...spec, commands: [{ script, bindings: {} }] }, sink).ended;
    return (LINES * 1000) / (performance.now() - began);
  };
  const before = process.memoryUsage.rss();
  const chunker = new Chunker({ bytesMax: Number.MAX_SAFE_INTEGER, emit: () => {} });
  const chunked = await timed(chunker);
  await chunker.end();
  const grownMiB = (process.memoryUsage.rss() - before) / 1024 ** 2;
  const pipe = await timed(silent);
  return `log lines of one stage through the chunker: ${chunked.toFixed(0)}/s (${((chunked * 100) / 1e6).toFixed(0)} MB/s); the pipe alone ${pipe.toFixed(0)}/s (${percent(chunked, pipe)}); process grew by ${grownMiB.toFixed(0)} MiB`;
}

/** The floor: a shell that forks a stage for each line, with nothing contained and nothing captured. */
class PlainHelper {
  readonly #child: ChildProcess = spawn(
    'dash',
    ['-c', 'while read -r order; do (exec sh -c true) </dev/null >/dev/null 2>&1; echo $?; done'],
    { stdio: ['pipe', 'pipe', 'inherit'] },
  );
  #resolve: () => void = () => {};

  constructor() {
    if (this.#child.stdout !== null) createInterface({ input: this.#child.stdout }).on('line', () => this.#resolve());
  }

  run(): Promise<void> {
    return new Promise((resolve) => {
      this.#resolve = resolve;
      this.#child.stdin?.write('\n');
    });
  }

  end(): void {
    this.#child.stdin?.end();
  }
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0;
}

function percent(one: number, other: number): string {
  return `${Math.round((one / other) * 100)} %`;
}

if (import.meta.main) for (const line of await benchExecutor()) process.stdout.write(`${line}\n`);
