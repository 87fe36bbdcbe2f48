/**
 * Removes the bytes of kept files that no run names, or names no longer: what expired, what an attempt has stored that came to
 * nothing, and what a removed run has left. Run by every registry now and then; several at once do no harm.
 *
 *  ARTIFACTSWEEP-1 Of a run that is not closed nothing goes: its attempts may name by their results what they find stored.
 *  ARTIFACTSWEEP-2 Only what is older than `olderThanMs` goes.
 *  ARTIFACTSWEEP-3 What has expired stays for `expiredForMs` more: others, whose clocks are behind this one, still show it.
 *  ARTIFACTSWEEP-4 What is larger than any list says goes as what none names: it would count as what it is not.
 */
import { decodeManifest, MANIFEST_BYTES_MAX } from '@penstock/artifacts';
import type { ObjectHead, ObjectStore } from '@penstock/object-store';
import type { StageView } from '@penstock/run';
import { ARTIFACT_PREFIX, partsOfKey, type Contents } from './contents.ts';
import type { Unsealed } from './unsealed.ts';
import type { KeptUsage } from './usage.ts';

/** As much of a run's document as says what it names. */
export interface SweptRun {
  readonly open: boolean;
  readonly view: { readonly stages: readonly Pick<StageView, 'artifacts' | 'report'>[] };
}

export interface SweepParts {
  readonly objects: Pick<ObjectStore, 'list' | 'delete' | 'removeLeftovers'>;
  readonly contents: Pick<Contents, 'whole'>;
  readonly usage: KeptUsage;
  readonly unsealed: Pick<Unsealed, 'forget'>;
  /** Null: there is no such run. */
  readonly runOf: (runId: string) => Promise<SweptRun | null>;
}

const SWEPT_AFTER_MS = 24 * 60 * 60_000;
/** No clock that anybody goes by is wrong by more. */
const EXPIRED_FOR_MS = 24 * 60 * 60_000;
/** Looked at together: what is named is read once for all of a run that are among them. */
const BATCH = 10_000;

/** For how long what may go still stays. */
export interface SweepDelays {
  readonly olderThanMs?: number | undefined;
  readonly expiredForMs?: number | undefined;
}

export interface SweptArtifacts {
  readonly objects: number;
  readonly lists: number;
}

export async function sweepArtifacts(
  parts: SweepParts,
  now: number,
  { olderThanMs = SWEPT_AFTER_MS, expiredForMs = EXPIRED_FOR_MS }: SweepDelays = {},
): Promise<SweptArtifacts> {
  const before = now - olderThanMs;
  const expired = now - expiredForMs;
  const lists = await sweepLists(parts, expired, before);
  let objects = 0;
  let batch = new Map<string, ObjectHead[]>();
  let count = 0;
  const flush = async (): Promise<void> => {
    for (const [runId, heads] of batch) objects += await sweepRun(parts, runId, heads, expired);
    batch = new Map();
    count = 0;
  };
  for await (const head of parts.objects.list(ARTIFACT_PREFIX)) {
    if (head.storedAt >= before) continue;
    const { owner: runId } = partsOfKey(head.key);
    const heads = batch.get(runId);
    if (heads === undefined) batch.set(runId, [head]);
    else heads.push(head);
    count += 1;
    if (count >= BATCH) await flush();
  }
  await flush();
  await parts.unsealed.forget(before, async (runId) => (await namedOrUnknown(parts, runId, expired)) !== undefined);
  await parts.objects.removeLeftovers(olderThanMs);
  return { objects, lists };
}

/**
 * Of what its stages keep, and of how their tests went: those that have not expired. What an adopted stage has lies in the run that
 * kept it, and expires there too.
 */
function listsOf({ view }: SweptRun, expired: number): string[] {
  return view.stages
    .filter(({ artifacts }) => artifacts?.run === undefined)
    .flatMap(({ artifacts, report }) => [artifacts, report])
    .flatMap((kept) => (kept === undefined || kept.expiresAt <= expired ? [] : [kept.manifest]));
}

/** And how large they are said to be. Undefined: all of it is kept. */
async function namedBy(parts: SweepParts, runId: string, expired: number): Promise<Map<string, number> | undefined> {
  const run = await parts.runOf(runId);
  const named = new Map<string, number>();
  if (run === null) return named;
  if (run.open) return undefined;
  const name = (sha256: string, bytes: number): void => void named.set(sha256, Math.max(bytes, named.get(sha256) ?? 0));
  for (const list of listsOf(run, expired)) {
    const manifest = await parts.contents.whole(runId, list, MANIFEST_BYTES_MAX);
    for (const { sha256, sizeBytes } of decodeManifest(manifest)) name(sha256, sizeBytes);
    name(list, manifest.length);
  }
  return named;
}

/** A list that cannot be read keeps all of its run: what it names is not known. */
async function namedOrUnknown(parts: SweepParts, runId: string, expired: number): ReturnType<typeof namedBy> {
  return await namedBy(parts, runId, expired).catch(() => undefined);
}

async function sweepRun(
  parts: SweepParts,
  runId: string,
  heads: readonly ObjectHead[],
  expired: number,
): Promise<number> {
  const named = await namedOrUnknown(parts, runId, expired);
  if (named === undefined) return 0;
  let removed = 0;
  for (const { key, size } of heads) {
    if ((named.get(partsOfKey(key).sha256) ?? -1) >= size) continue;
    await parts.objects.delete(key);
    removed += 1;
  }
  return removed;
}

/** The counts of what no run names any more. */
async function sweepLists({ usage, runOf }: SweepParts, expired: number, before: number): Promise<number> {
  let forgotten = 0;
  for await (const { id, key, runId, manifest } of usage.storedBefore(before)) {
    const run = await runOf(runId);
    if (run?.open === true) continue;
    if (run !== null && listsOf(run, expired).includes(manifest)) continue;
    await usage.forget({ id, key });
    forgotten += 1;
  }
  return forgotten;
}
