/** What a stage in a container costs, beside the bare engine's own command in the same run. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { ContainerExecutor, type FoundEngine, type StageSpec } from '@penstock/executor';
import { engineForTests, IMAGE } from '@penstock/executor/testing-containers';

const REPETITIONS = 9;

interface Took {
  /** Until the first output. */
  readonly firstMs: number;
  /** Until it is removed. */
  readonly wholeMs: number;
}

export async function benchContainers(): Promise<string[]> {
  const engine = await engineForTests('the benchmark of containers');
  if (engine === null) return ['not run: this machine has no podman or docker, or no static busybox'];
  const user = process.getuid?.() === 0 ? { uid: 190_006, gid: 190_006 } : undefined;
  const executor = new ContainerExecutor({ engine, owner: `bench ${process.pid}` });
  try {
    // The engine's own process comes up with the first of all.
    await stage(executor, { ...SPEC, user, place: { image: { name: IMAGE }, network: 'none' } });
    const lines: string[] = [];
    for (const network of ['open', 'none'] as const) {
      const own: Took[] = [];
      const bare: Took[] = [];
      // Interleaved: the neighbours' load moves both alike.
      for (let repetition = 0; repetition < REPETITIONS; repetition += 1) {
        bare.push(await bareRun(engine, network));
        own.push(await stage(executor, { ...SPEC, user, place: { image: { name: IMAGE }, network } }));
      }
      lines.push(`network ${network}, start to first output: ${compared(own, bare, 'firstMs', engine)}`);
      lines.push(`network ${network}, start to removed: ${compared(own, bare, 'wholeMs', engine)}`);
    }
    return lines;
  } finally {
    await executor.close();
  }
}

const SPEC: StageSpec = {
  helperKey: 'bench',
  commands: [{ script: 'echo up', bindings: {} }],
  env: {},
  cwd: '/',
  timeoutMs: 60_000,
};

async function stage(executor: ContainerExecutor, spec: StageSpec): Promise<Took> {
  const began = performance.now();
  let firstMs = Number.NaN;
  const write = (): void => {
    if (Number.isNaN(firstMs)) firstMs = performance.now() - began;
  };
  const exit = await executor.start(spec, { write }).ended;
  if (exit.kind !== 'exit' || exit.code !== 0) throw new Error(`a stage ended as ${JSON.stringify(exit)}`);
  return { firstMs, wholeMs: performance.now() - began };
}

async function bareRun(engine: FoundEngine, network: 'open' | 'none'): Promise<Took> {
  const [file = '', ...flags] =
    engine.kind === 'podman' ? engine.command : ['docker', '--host', `unix://${engine.socketPath}`];
  const limits = ['--ulimit', 'nofile=1024:1024', '--ulimit', 'nproc=4096:4096'];
  const net = network === 'none' ? ['--network', 'none'] : [];
  const began = performance.now();
  const child = spawn(file, [...flags, 'run', '--rm', ...limits, ...net, IMAGE, 'echo', 'up'], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let firstMs = Number.NaN;
  child.stdout.once('data', () => {
    firstMs = performance.now() - began;
  });
  await once(child, 'close');
  return { firstMs, wholeMs: performance.now() - began };
}

function compared(own: readonly Took[], bare: readonly Took[], what: keyof Took, engine: FoundEngine): string {
  const [a, b] = [median(own.map((took) => took[what])), median(bare.map((took) => took[what]))];
  return `${a.toFixed(0)} ms; bare ${engine.kind} run ${b.toFixed(0)} ms (${(a / b).toFixed(2)}x)`;
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;
}
