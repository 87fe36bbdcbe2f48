/** Kept files of earlier stages: what a new folder begins with, and what is laid out in one that lacks them. */
import { createHash, randomUUID } from 'node:crypto';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ArtifactsFailed, encodeManifest } from '@penstock/artifacts';
import type { Job } from '@penstock/bus';
import { NotFound } from '@penstock/errors';
import { Workspaces, type SharedContents } from '@penstock/executor';
import { silentLogger } from '@penstock/telemetry';
import { InheritedFiles } from '../src/artifacts/inherited-files.ts';
import { fillShared, layOutMissing, type InheritedSource } from '../src/workspace/shared-files.ts';

type Inherits = NonNullable<Job['inherits']>;

const RUN = '0192f0c1-2b3c-7abc-8def-0123456789ab';
const sha256 = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex');
const stored = new Map<string, Buffer>();
const never = new AbortController().signal;
let folder: string;
let workspace: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'inherited-'));
  workspace = join(folder, 'workspace');
});
afterEach(() => {
  rmSync(folder, { recursive: true });
  stored.clear();
});

function store(bytes: Buffer): string {
  stored.set(sha256(bytes), bytes);
  return sha256(bytes);
}

function kept(path: string, text = path): Inherits[number] {
  const content = Buffer.from(text);
  const file = { path, sizeBytes: content.length, sha256: store(content), executable: false };
  return { stage: path, manifest: store(encodeManifest([file])), files: 1, bytes: content.length };
}

function jobWith(inherits: Inherits): Job {
  return { runId: RUN, stage: 's', attempt: 1, session: 'x', credit: 1, partition: 0, inherits } as Partial<Job> as Job;
}

function inheritedFiles(): InheritedFiles {
  const storage = async (_verb: string, body: unknown): Promise<unknown> => {
    const data = stored.get((body as { readonly sha256: string }).sha256);
    if (data === undefined) throw new NotFound('there is no such content');
    return { data, sizeBytes: data.length };
  };
  return new InheritedFiles({ storage, folder: join(folder, 'unpacking'), log: silentLogger() });
}

async function layOver(inherits: Inherits, isKnown = true, missing = inherits): Promise<void> {
  const files = inheritedFiles();
  await files.layOver(jobWith(inherits), missing, workspace, { isKnown, signal: never });
  expect(readdirSync(join(folder, 'unpacking'))).toEqual([]);
}

describe('kept files of earlier stages', () => {
  it('are what a new folder begins with, those of later stages over those of earlier ones', async () => {
    const job = jobWith([kept('a/one', 'old'), kept('a/one', 'new'), kept('two')]);
    await inheritedFiles().filling(job, undefined, never)?.(workspace);
    expect(readFileSync(join(workspace, 'a/one'), 'utf8')).toBe('new');
    expect(readFileSync(join(workspace, 'two'), 'utf8')).toBe('two');
  });

  it('are laid out in a folder that is there, in the place of what stands there', async () => {
    mkdirSync(join(workspace, 'dist'), { recursive: true });
    writeFileSync(join(workspace, 'dist/other'), 'stays');
    writeFileSync(join(workspace, 'dist/app'), 'checked out');
    await layOver([kept('dist/app', 'built'), kept('new/deep', 'x')]);
    expect(readFileSync(join(workspace, 'dist/other'), 'utf8')).toBe('stays');
    expect(readFileSync(join(workspace, 'dist/app'), 'utf8')).toBe('built');
    expect(readFileSync(join(workspace, 'new/deep'), 'utf8')).toBe('x');
  });

  it('do not come over those of later stages that are there already', async () => {
    mkdirSync(join(workspace, 'dist'), { recursive: true });
    writeFileSync(join(workspace, 'dist/app'), 'later');
    const [fetched, built, signed] = [kept('fetched'), kept('dist/app', 'later'), kept('dist/sum', 'newest')];
    const [early, sum] = [kept('dist/app', 'early'), kept('dist/sum', 'older')];
    const expired = kept('dist/gone');
    stored.delete(expired.manifest);
    await layOver([fetched, early, sum, built, expired, signed], true, [early, sum, signed]);
    expect(readFileSync(join(workspace, 'dist/app'), 'utf8')).toBe('later');
    expect(readFileSync(join(workspace, 'dist/sum'), 'utf8')).toBe('newest');
    expect(existsSync(join(workspace, 'fetched'))).toBe(false);
  });

  it('of earlier stages come where a later one that is there has a file in the place of their folder, without what was in it', async () => {
    mkdirSync(workspace);
    writeFileSync(join(workspace, 'dist'), 'a file');
    const [early, later] = [kept('dist/app'), kept('dist', 'a file')];
    await layOver([early, kept('other'), later], true, [early]);
    expect(readFileSync(join(workspace, 'dist'), 'utf8')).toBe('a file');
  });

  it('of earlier stages have no file in the place of the folder of a later one that is there, and no empty folder in that of its file', async () => {
    mkdirSync(join(workspace, 'dist'), { recursive: true });
    writeFileSync(join(workspace, 'dist/app'), 'later');
    writeFileSync(join(workspace, 'gen'), 'a file since');
    const [early, generated, later] = [kept('dist', 'a file'), kept('gen/deep/code'), kept('dist/app', 'later')];
    await layOver([early, generated, later, kept('gen/deep/code')], true, [early, generated]);
    expect(readFileSync(join(workspace, 'dist/app'), 'utf8')).toBe('later');
    expect(readFileSync(join(workspace, 'gen'), 'utf8')).toBe('a file since');
  });

  it('are written through no link that a stage has put in their way', async () => {
    const outside = join(folder, 'outside');
    mkdirSync(workspace);
    mkdirSync(outside);
    symlinkSync(outside, join(workspace, 'dist'));
    symlinkSync(join(outside, 'file'), join(workspace, 'file'));
    await layOver([kept('dist/app'), kept('file')]);
    expect(readdirSync(outside)).toEqual([]);
    expect(readFileSync(join(workspace, 'file'), 'utf8')).toBe('file');
  });

  it('fail the stage where a folder stands in the place of one of them, and its log says so', async () => {
    mkdirSync(join(workspace, 'dist/app'), { recursive: true });
    await expect(layOver([kept('dist/app')])).rejects.toThrow(
      'the artifacts of \'dist/app\' cannot be laid out: a folder is in the place of "app"',
    );
    await layOver([kept('dist/app')], false);
  });

  it('change nothing in a folder that this process does not know, and may have expired there', async () => {
    mkdirSync(workspace);
    writeFileSync(join(workspace, 'changed'), 'by a later stage');
    const gone = kept('gone');
    stored.delete(gone.manifest);
    await layOver([kept('changed'), kept('lost'), gone], false);
    expect(readFileSync(join(workspace, 'changed'), 'utf8')).toBe('by a later stage');
    expect(readFileSync(join(workspace, 'lost'), 'utf8')).toBe('lost');
    expect(existsSync(join(workspace, 'gone'))).toBe(false);
    await expect(layOver([gone])).rejects.toThrow(ArtifactsFailed);
  });
});

/** Notes what is laid out; `fails`: how often it does not come to that. */
function laying(fails = 0) {
  const laid: string[][] = [];
  const tried = { left: fails };
  const source: InheritedSource = {
    filling: () => undefined,
    layOver: async (_job, inherits) => {
      await new Promise(setImmediate);
      if ((tried.left -= 1) >= 0) throw new Error('not this time');
      laid.push(inherits.map(({ stage }) => stage));
    },
  };
  return { laid, source };
}

describe('what the shared folder of a run lacks', () => {
  const [a, b] = [kept('a'), kept('b')];
  const complete = async (
    inherits: Inherits,
    workspaces: { contentsOf(runId: string): SharedContents },
    by: InheritedSource,
  ) => await layOutMissing(jobWith(inherits), workspace, workspaces, by, { signal: never });

  /** In which the run has its folder. */
  const prepared = async (): Promise<Workspaces> => {
    const workspaces = new Workspaces(folder);
    await workspaces.prepare({ runId: RUN, attempt: randomUUID(), fresh: false, declaresOutputs: false });
    return workspaces;
  };

  it('is laid out once, by the first stage that needs it; others that need it wait', async () => {
    const workspaces = await prepared();
    const { laid, source } = laying();
    await Promise.all([complete([a], workspaces, source), complete([a, b], workspaces, source)]);
    await complete([a, b], workspaces, source);
    expect(laid).toEqual([['a'], ['b']]);
  });

  it('is laid out by who waits, where the first has failed', async () => {
    const workspaces = await prepared();
    const { laid, source } = laying(1);
    const both = await Promise.allSettled([complete([a], workspaces, source), complete([a], workspaces, source)]);
    expect(both.map(({ status }) => status)).toEqual(['rejected', 'fulfilled']);
    expect(laid).toEqual([['a']]);
  });

  it('is not there before who waited has laid it out, also for the others who waited', async () => {
    const workspaces = await prepared();
    const { laid, source } = laying(1);
    const done: number[] = [];
    const waiting = (): Promise<void> => complete([a], workspaces, source).then(() => void done.push(laid.length));
    await Promise.allSettled([complete([a], workspaces, source), waiting(), waiting()]);
    expect([laid, done]).toEqual([[['a']], [1, 1]]);
  });

  it('is laid out by who needs more than the first that failed, all of it', async () => {
    const workspaces = await prepared();
    const { laid, source } = laying(1);
    const both = await Promise.allSettled([complete([a], workspaces, source), complete([a, b], workspaces, source)]);
    expect(both.map(({ status }) => status)).toEqual(['rejected', 'fulfilled']);
    expect(laid).toEqual([['a', 'b']]);
  });

  it('is laid out when what it comes over is there, also where another stage takes long for that', async () => {
    const workspaces = await prepared();
    const { laid, source } = laying();
    const slow = Promise.withResolvers<void>();
    const first = complete([a], workspaces, {
      ...source,
      layOver: async (...given) => {
        await slow.promise;
        await source.layOver(...given);
      },
    });
    const second = complete([a, b], workspaces, source);
    await new Promise(setImmediate);
    await new Promise(setImmediate);
    expect(laid).toEqual([]);
    slow.resolve();
    await Promise.all([first, second]);
    expect(laid).toEqual([['a'], ['b']]);
  });

  it('is known of a folder of this process, and forgotten with the folder', async () => {
    const workspaces = await prepared();
    const { laid, source } = laying();
    workspaces.contentsOf(RUN).laidOut.set(a.manifest, Promise.resolve());
    await complete([a], workspaces, source);
    expect([laid, workspaces.contentsOf(RUN).isKnown]).toEqual([[], true]);
    expect(new Workspaces(folder).contentsOf(RUN).isKnown).toBe(false);
    await workspaces.remove(RUN);
    await complete([a], workspaces, source);
    expect(laid).toEqual([['a']]);
    // Who comes late leaves nothing that nobody would take away again.
    expect(workspaces.contentsOf(RUN).laidOut.size).toBe(0);
  });

  it('is known of a folder that this process has made for a run from before it', async () => {
    await new Workspaces(folder).prepare({ runId: RUN, attempt: randomUUID(), fresh: true, declaresOutputs: false });
    const workspaces = new Workspaces(folder);
    expect(workspaces.contentsOf(RUN).isKnown).toBe(false);
    await fillShared(workspace, async () => {}, jobWith([a]), workspaces);
    const { laid, source } = laying();
    await complete([a], workspaces, source);
    expect([laid, workspaces.contentsOf(RUN).isKnown]).toEqual([[], true]);
  });
});
