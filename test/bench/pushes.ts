/**
 * Pushes to ended runs: signed pushes to a server, each of which ends in a run of one stage at its commit, once all of one commit
 * and once of a commit each; beside what `git clone --shared` alone does in the same minute, two at a time. And, as a
 * benchmark of its own, a workspace of a repository of 50,000 files, beside the same clone of it.
 */
import { execFile, execFileSync } from 'node:child_process';
import { mkdirSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as rest } from 'node:timers/promises';
import { promisify } from 'node:util';
import { openMirrors } from '@penstock/git/mirrors';
import { silentLog } from '@penstock/telemetry/log';
import { githubPush, githubSignature, makeRepository, type TestRepository } from '@penstock/webhook-ingest/testing';
import { startServer, temporaryFolder, type RunningServer } from '../support/server.ts';
import { processorTimes } from './processor-times.ts';

const SECRET = 'a webhook secret';
const IN_FLIGHT = 20;
const WARM = 40;
const PUSHES = 400;
const SLOTS = 4;
const END_MS_MAX = 300_000;
const CLONES = 60;
const LARGE_FILES = 50_000;
const LARGE_REPETITIONS = 3;
/** From here on nothing is repeated: a disk of many small files may be slow. */
const LARGE_MS_MAX = 60_000;
const run = promisify(execFile);

export async function benchPushes(): Promise<string[]> {
  const folder = temporaryFolder('penstock-bench-');
  const repository = makeRepository();
  const server = await startServer({
    env: { SERVICE_WEBHOOK_SECRET: SECRET, SERVICE_WEBHOOK_WAIT_SECS: '0', SERVICE_SLOTS: String(SLOTS) },
  });
  try {
    const marks = join(folder.path, 'marks');
    mkdirSync(marks);
    const files = {
      '.pipeline.yaml': `pipeline:\n  name: pushes\nstages:\n  only:\n    run: ': >"${marks}/$PENSTOCK_RUN_ID"'\n`,
      'README.md': 'a repository\n',
      'src/main.ts': 'export {};\n'.repeat(100),
      'src/other.ts': 'export {};\n'.repeat(100),
    };
    const commits = Array.from({ length: WARM + 2 * PUSHES }, (_, index) =>
      repository.commit({ ...files, 'src/index.ts': String(index) }),
    );
    const [first = ''] = commits;
    const drive = (count: number, commitOf: (index: number) => string): Promise<Driven> =>
      drivePushes({ server, url: repository.url, marks }, count, commitOf);
    await drive(WARM, (index) => commits[index] ?? '');
    const one = await drive(PUSHES, () => first);
    const each = await drive(PUSHES, (index) => commits[WARM + index] ?? '');
    const oneLater = await drive(PUSHES, () => first);
    const eachLater = await drive(PUSHES, (index) => commits[WARM + PUSHES + index] ?? '');
    const floor = await sharedClones(repository, folder.path);
    return [
      `pushes to ended runs, one commit: ${textOf(one)} (to reach: 100); after ${2 * PUSHES} more: ${textOf(oneLater)}`,
      `pushes to ended runs, a commit each: ${textOf(each)} (to reach: 60); after ${2 * PUSHES} more: ${textOf(eachLater)}`,
      `git clone --shared of the same repository, two at a time: ${floor.toFixed(0)}/s`,
    ];
  } finally {
    await server.stop();
    repository.remove();
    folder.remove();
  }
}

interface Driven {
  readonly perSecond: number;
  /** Of the server's own process, for each push. */
  readonly processorMs: number;
  /** Of the programs that it has started and that have ended. */
  readonly programsMs: number;
}

function textOf({ perSecond, processorMs, programsMs }: Driven): string {
  return `${perSecond.toFixed(0)}/s, ${processorMs.toFixed(1)} ms of the server's processor each and ${programsMs.toFixed(1)} ms of its programs`;
}

async function drivePushes(
  { server, url, marks }: { readonly server: RunningServer; readonly url: string; readonly marks: string },
  count: number,
  commitOf: (index: number) => string,
): Promise<Driven> {
  const before = readdirSync(marks).length;
  const timesBefore = processorTimes(server.pid);
  const start = performance.now();
  let next = 0;
  const lane = async (): Promise<void> => {
    while (next < count) {
      const index = next;
      next += 1;
      await push(server, url, commitOf(index), index);
    }
  };
  await Promise.all(Array.from({ length: IN_FLIGHT }, lane));
  while (readdirSync(marks).length < before + count) {
    if (performance.now() - start > END_MS_MAX)
      throw new Error(
        `${readdirSync(marks).length - before} of ${count} runs ended:\n${server.output().slice(-2_000)}`,
      );
    await rest(10);
  }
  const ms = performance.now() - start;
  const times = processorTimes(server.pid);
  return {
    perSecond: (count * 1000) / ms,
    processorMs: (times.own - timesBefore.own) / count,
    programsMs: (times.programs - timesBefore.programs) / count,
  };
}

async function push(server: RunningServer, url: string, commit: string, index: number): Promise<void> {
  const body = JSON.stringify({ ...githubPush({ url, commit, message: 'a change' }), index });
  const response = await fetch(`${server.url}/webhook`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      'x-github-event': 'push',
      'x-hub-signature-256': githubSignature(body, SECRET),
    },
    body,
  });
  if (!response.ok) throw new Error(`a push was answered ${response.status}: ${await response.text()}`);
  await response.arrayBuffer();
}

async function sharedClones({ folder }: { readonly folder: string }, into: string): Promise<number> {
  let next = 0;
  const start = performance.now();
  const lane = async (): Promise<void> => {
    while (next < CLONES) {
      const target = join(into, `clone-${next}`);
      next += 1;
      await run('git', ['clone', '--quiet', '--shared', folder, target]);
      rmSync(target, { recursive: true });
    }
  };
  await Promise.all([lane(), lane()]);
  return (CLONES * 1000) / (performance.now() - start);
}

export async function benchCheckout(): Promise<string[]> {
  const folder = temporaryFolder('penstock-bench-');
  const repository = makeRepository();
  const mirrors = openMirrors({
    folder: join(folder.path, 'mirrors'),
    bytesMax: 2 * 1024 ** 3,
    policy: { mode: 'development', allowedHosts: [] },
    log: silentLog,
  });
  try {
    const commit = largeCommit(repository);
    const began = performance.now();
    const fetched = await mirrors.fetch({ url: repository.url, commit });
    const fetchMs = performance.now() - began;
    const ours: Timed[] = [];
    const theirs: Timed[] = [];
    for (let index = 0; index < LARGE_REPETITIONS && performance.now() - began < LARGE_MS_MAX; index += 1) {
      // All stay until the end: on ext4 without a journal each new file looks for an inode past all that were removed in the
      // last minutes, which takes twenty times as long as the checkout (docs/adr/0072-files-on-threads.md).
      const target = (whose: string): string => join(folder.path, `${whose}-${index}`);
      ours.push(await timed(async () => fetched.checkout(target('ours'))));
      theirs.push(await timed(() => run('git', ['clone', '--quiet', '--shared', repository.folder, target('theirs')])));
    }
    const ratio = median(ours.map(processorMsOf)) / median(theirs.map(processorMsOf));
    return [
      `a workspace of ${LARGE_FILES} files: ${timedText(ours)}, after one fetch of ${fetchMs.toFixed(0)} ms; git clone --shared of it: ${timedText(theirs)}; ratio ${ratio.toFixed(2)} (medians of ${ours.length}, in turn)`,
    ];
  } finally {
    await mirrors.close();
    repository.remove();
    folder.remove();
  }
}

function largeCommit(repository: TestRepository): string {
  const files = Array.from({ length: LARGE_FILES }, (_, index) => {
    const path = `src/${index % 500}/file-${index}.txt`;
    const text = `${path}\n`.repeat(20);
    return `M 100644 inline ${path}\ndata ${text.length}\n${text}\n`;
  });
  // Into one pack: written as files and added, they would be a hundred thousand files more on the disk.
  execFileSync('git', ['-C', repository.folder, 'fast-import', '--quiet', '--depth=0'], {
    input: `commit refs/heads/main\ncommitter a <a@example.com> 0 +0000\ndata 10\nmany files\n${files.join('')}`,
  });
  return repository.git('rev-parse', 'refs/heads/main');
}

interface Timed {
  readonly ms: number;
  /** Of this process and the programs that have ended meanwhile. */
  readonly processorMs: number;
}

async function timed(work: () => Promise<unknown>): Promise<Timed> {
  const processorMs = (): number => {
    const { own, programs } = processorTimes(process.pid);
    return own + programs;
  };
  const [start, before] = [performance.now(), processorMs()];
  await work();
  return { ms: performance.now() - start, processorMs: processorMs() - before };
}

function timedText(all: readonly Timed[]): string {
  return `${median(all.map(({ ms }) => ms)).toFixed(0)} ms, ${median(all.map(processorMsOf)).toFixed(0)} ms of the processors`;
}

function processorMsOf({ processorMs }: Timed): number {
  return processorMs;
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;
}
