/** What a folder that is made anew begins with: kept files of earlier stages. */
import { createHash } from 'node:crypto';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ArtifactsFailed, encodeManifest } from '@penstock/artifacts';
import type { Job } from '@penstock/bus';
import { NotFound } from '@penstock/errors';
import { silentLogger } from '@penstock/telemetry';
import { InheritedFiles } from '../src/artifacts/inherited-files.ts';

const sha256 = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex');
const stored = new Map<string, Buffer>();
let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'inherited-'));
});
afterEach(() => {
  rmSync(folder, { recursive: true });
  stored.clear();
});

function store(bytes: Buffer): string {
  stored.set(sha256(bytes), bytes);
  return sha256(bytes);
}

function kept(stage: string, forOthers?: true): NonNullable<Job['inherits']>[number] {
  const content = Buffer.from(stage);
  const file = { path: stage, sizeBytes: content.length, sha256: store(content), executable: false };
  return { stage, manifest: store(encodeManifest([file])), files: 1, bytes: content.length, forOthers };
}

async function fill(inherits: Job['inherits']): Promise<string[]> {
  const storage = async (_verb: string, body: unknown): Promise<unknown> => {
    const data = stored.get((body as { readonly sha256: string }).sha256);
    if (data === undefined) throw new NotFound('there is no such content');
    return { data, sizeBytes: data.length };
  };
  const files = new InheritedFiles({ storage, folder: join(folder, 'unpacking'), log: silentLogger() });
  const job = { runId: 'r', stage: 's', attempt: 1, session: 'x', credit: 1, partition: 0, inherits } as Job;
  const workspace = join(folder, 'workspace');
  await files.filling(job, undefined, new AbortController().signal)?.(workspace);
  return readdirSync(workspace).map((name) => `${name}: ${readFileSync(join(workspace, name), 'utf8')}`);
}

describe('kept files of earlier stages', () => {
  it('are laid out, those that only later stages need among them', async () => {
    expect(await fill([kept('own'), kept('others', true)])).toEqual(['others: others', 'own: own']);
  });

  it('that only later stages need hold nothing up where they have expired; those of its own fail the stage', async () => {
    const [own, others] = [kept('own'), kept('others', true)];
    stored.delete(others.manifest);
    expect(await fill([own, others])).toEqual(['own: own']);
    rmSync(join(folder, 'workspace'), { recursive: true });
    stored.delete(own.manifest);
    await expect(fill([own, others])).rejects.toThrow(ArtifactsFailed);
  });
});
