/**
 * What the start of a stage costs in each executor, beside the bare tool that it stands on, by turns on the same machine: stages that do
 * nothing, one after the other, each from its start until nothing of it is left. What the machine lacks is said.
 */
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chownSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import {
  ContainerExecutor,
  defaultLimits,
  ProcessExecutor,
  SandboxExecutor,
  whySandboxLacks,
  type Executor,
  type StageSpec,
} from '@penstock/executor';
import { engineForTests, IMAGE } from '@penstock/executor/testing-containers';
import { IMAGE as POD_IMAGE, labForTests } from '@penstock/executor-kubernetes/testing';

/** What a stage may cost of what the bare tool does. */
const TIMES_MAX = 1.3;
const WAIT_MS_MAX = 60_000;
const SPEC: StageSpec = {
  helperKey: 'bench',
  commands: [{ script: 'true', bindings: {} }],
  env: {},
  cwd: '/',
  timeoutMs: WAIT_MS_MAX,
};

export async function benchExecutors(): Promise<string[]> {
  const lines: string[] = [];
  for (const bench of [benchProcess, benchSandbox, benchContainer, benchPod]) lines.push(await bench());
  return [...lines, `load of the machine: ${loadavg()[0]?.toFixed(1)}`];
}

async function benchProcess(): Promise<string> {
  const executor = new ProcessExecutor();
  try {
    return await compare(
      'a process',
      'spawn of sh -c true',
      60,
      () => stage(executor),
      () => tool('sh', ['-c', 'true']),
    );
  } finally {
    await executor.close();
  }
}

async function benchSandbox(): Promise<string> {
  const users = process.getuid?.() === 0 ? { first: 340_000, last: 340_000 } : undefined;
  const lacking = await whySandboxLacks(users);
  if (lacking !== null) return `a sandbox: not run, ${lacking}`;
  const folder = mkdtempSync(join(tmpdir(), 'penstock-bench-'));
  const keep = join(folder, 'work');
  mkdirSync(keep, { mode: 0o711 });
  const layout = { keep, hidden: [], paths: [], users };
  const executor = new SandboxExecutor({ layout, limits: defaultLimits(folder) });
  const user = users === undefined ? undefined : { uid: users.first, gid: users.first };
  const run = { folder: join(keep, 'run'), temporary: join(keep, '.tmp-run') };
  for (const path of Object.values(run)) {
    mkdirSync(path, { mode: 0o700 });
    if (user !== undefined) chownSync(path, user.uid, user.gid);
  }
  const words = ['--ro-bind', '/', '/', '--dev', '/dev', '--proc', '/proc', '--unshare-all', 'sh', '-c', 'true'];
  try {
    const own = (): Promise<void> => stage(executor, { user, run, cwd: run.folder });
    return await compare('a sandbox', 'bwrap', 40, own, () => tool('bwrap', words));
  } finally {
    await executor.close();
    rmSync(folder, { recursive: true, force: true });
  }
}

async function benchContainer(): Promise<string> {
  const engine = await engineForTests('the benchmark of executors: containers');
  if (engine === null) return 'a container: not run, this machine has no podman or docker, or no static busybox';
  const executor = new ContainerExecutor({ engine, owner: `bench ${process.pid}` });
  const user = process.getuid?.() === 0 ? { uid: 190_006, gid: 190_006 } : undefined;
  const [file = '', ...flags] =
    engine.kind === 'podman' ? engine.command : ['docker', '--host', `unix://${engine.socketPath}`];
  const words = [...flags, 'run', '--rm', '--ulimit', 'nofile=1024:1024', '--ulimit', 'nproc=4096:4096', IMAGE, 'true'];
  try {
    const own = (): Promise<void> => stage(executor, { user, place: { image: { name: IMAGE } } });
    return await compare('a container', `${engine.kind} run`, 7, own, () => tool(file, words));
  } finally {
    await executor.close();
  }
}

async function benchPod(): Promise<string> {
  const kubeconfig = process.env['SERVICE_TEST_KUBECONFIG'];
  const lab = await labForTests('the benchmark of executors: Pods');
  if (lab === null || kubeconfig === undefined) return 'a Pod: not run, SERVICE_TEST_KUBECONFIG names no cluster';
  const executor = lab.executor();
  const run = promisify(execFile);
  const kubectl = async (...words: readonly string[]): Promise<void> =>
    void (await run('kubectl', ['--kubeconfig', kubeconfig, '-n', 'default', ...words], { timeout: WAIT_MS_MAX }));
  let made = 0;
  const bare = async (): Promise<void> => {
    const name = `bare-${process.pid}-${(made += 1)}`;
    try {
      await kubectl(
        ...[
          'run',
          name,
          `--image=${POD_IMAGE}`,
          '--image-pull-policy=IfNotPresent',
          '--restart=Never',
          '--attach',
          '--quiet',
        ],
        ...['--', 'true'],
      );
    } finally {
      await kubectl('delete', 'pod', name, '--wait=false');
    }
  };
  try {
    return await compare('a Pod', 'kubectl run', 5, () => stage(executor), bare);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    return 'a Pod: not run, there is no kubectl on the PATH';
  } finally {
    await executor.close();
    await lab.close();
  }
}

async function stage(executor: Executor, more: Partial<StageSpec> = {}): Promise<void> {
  const exit = await executor.start({ ...SPEC, ...more }, { write: () => {} }).ended;
  if (exit.kind !== 'exit' || exit.code !== 0) throw new Error(`a stage ended as ${JSON.stringify(exit)}`);
}

async function tool(file: string, words: readonly string[]): Promise<void> {
  const [code] = (await once(spawn(file, words, { stdio: 'ignore' }), 'exit')) as [number | null];
  if (code !== 0) throw new Error(`${file} ended with ${code}`);
}

/** The first of each is warming up. Interleaved: the neighbours' load moves both alike. */
async function compare(
  what: string,
  bareName: string,
  rounds: number,
  own: () => Promise<void>,
  bare: () => Promise<void>,
): Promise<string> {
  const took: Record<'own' | 'bare', number[]> = { own: [], bare: [] };
  await bare();
  await own();
  for (let round = 0; round < rounds; round += 1) {
    took.bare.push(await msOf(bare));
    took.own.push(await msOf(own));
  }
  const [a, b] = [median(took.own), median(took.bare)];
  const times = a / b;
  const verdict = times <= TIMES_MAX ? 'within' : 'ABOVE';
  return `${what}: ${a.toFixed(1)} ms a stage, ${bareName} ${b.toFixed(1)} ms: ${times.toFixed(2)}x (${verdict} ${TIMES_MAX}x; ${rounds} each, ${spread(took.own)} and ${spread(took.bare)})`;
}

async function msOf(work: () => Promise<void>): Promise<number> {
  const begun = performance.now();
  await work();
  return performance.now() - begun;
}

function spread(all: readonly number[]): string {
  return `${Math.min(...all).toFixed(1)} to ${Math.max(...all).toFixed(1)}`;
}

function median(all: readonly number[]): number {
  return all.toSorted((a, b) => a - b)[Math.floor(all.length / 2)] ?? Number.NaN;
}
