/**
 * An owner of a sandbox, for tests: it runs the stages that it is told on its command line and prints what became of them. A
 * process of its own, so that it can be another user and have another network than the test.
 */
import { once } from 'node:events';
import { chownSync, mkdirSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { defaultLimits, ProcessExecutor, SandboxExecutor, type Executor, type StageExit } from '../src/index.ts';
import { RecordingSink } from '../src/testing/executor-suite.ts';

export interface OwnerTask {
  readonly kind: 'sandbox' | 'process';
  readonly dataDir: string;
  readonly users?: { readonly first: number; readonly last: number } | undefined;
  readonly deniedHosts?: readonly string[] | undefined;
  /** What each stage may have open. Absent: stages are not bounded. */
  readonly openFiles?: number | undefined;
  /** Answers `hello` on all addresses of its network. */
  readonly listenPort?: number | undefined;
  /** One after the other; those of a list at once. */
  readonly stages: readonly (OwnerStage | readonly OwnerStage[])[];
}

export interface OwnerStage {
  readonly key: string;
  readonly run: string;
  readonly script: string;
  readonly uid?: number | undefined;
  readonly network?: 'open' | 'public' | 'none' | undefined;
  readonly timeoutMs?: number | undefined;
  /** Contents of the file that its TOKEN names: the first at its start, each other one when it says `next`. */
  readonly contents?: readonly string[] | undefined;
}

export interface OwnerResult {
  readonly exit: StageExit;
  readonly stdout: string;
  readonly stderr: string;
  readonly system: string;
}

async function main(task: OwnerTask): Promise<OwnerResult[]> {
  const { kind, dataDir, users, deniedHosts, openFiles, listenPort } = task;
  const keep = join(dataDir, 'work');
  mkdirSync(join(keep, '0'), { recursive: true, mode: 0o711 });
  const server = createServer((socket) => socket.on('error', () => {}).end('hello\n'));
  if (listenPort !== undefined) await once(server.listen(listenPort, '0.0.0.0'), 'listening');
  const warn = (message: string): void => void process.stderr.write(`${message}\n`);
  const limits = openFiles === undefined ? undefined : { ...defaultLimits(dataDir), openFiles };
  const executor: Executor =
    kind === 'sandbox'
      ? new SandboxExecutor({ layout: { keep, hidden: [dataDir], paths: [], users }, deniedHosts, warn })
      : new ProcessExecutor({ covered: { cover: dataDir, keep }, hasUsers: users !== undefined, limits, warn });
  const run = async ({
    key,
    run: name,
    script,
    uid,
    network,
    timeoutMs = 30_000,
    contents = [],
  }: OwnerStage): Promise<OwnerResult> => {
    const folder = join(keep, '0', name);
    const temporary = join(keep, '0', `.tmp-${name}`);
    for (const path of [folder, temporary]) {
      mkdirSync(path, { recursive: true, mode: 0o700 });
      if (uid !== undefined) chownSync(path, uid, uid);
    }
    const sink = new RecordingSink();
    const [first, ...later] = contents;
    const stage = executor.start(
      {
        helperKey: key,
        commands: [{ script, bindings: {} }],
        env: { DATA: dataDir, WORK: keep },
        user: uid === undefined ? undefined : { uid, gid: uid },
        run: { folder, temporary },
        cwd: folder,
        place: network === undefined ? undefined : { network },
        renewedFiles: first === undefined ? [] : [{ variable: 'TOKEN', content: first }],
        timeoutMs,
        graceMs: 500,
      },
      sink,
    );
    for (const [at, content] of later.entries()) {
      await Promise.race([sink.until('next\n'.repeat(at + 1)), stage.ended]);
      stage.replaceFile?.('TOKEN', content);
    }
    const exit = await stage.ended;
    return { exit, stdout: sink.text(), stderr: sink.text('stderr'), system: sink.text('system') };
  };
  const results: OwnerResult[] = [];
  for (const stages of task.stages) results.push(...(await Promise.all([stages].flat().map(run))));
  await executor.close();
  server.close();
  return results;
}

const [task] = process.argv.slice(2);
if (import.meta.main && task !== undefined)
  process.stdout.write(JSON.stringify(await main(JSON.parse(task) as OwnerTask)));
