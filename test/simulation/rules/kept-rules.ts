/**
 * What must hold of kept files (P32) and of caches (P33), by the log, the storage of objects and the store alone: what is committed
 * can be read until it expires or is deleted, what nobody names goes, and a cache is of a committed success and of its own scope.
 */
import { decodeManifest, type FoundCache } from '@penstock/artifacts';
import { isEnded, type RunEvent, type RunState } from '@penstock/run';
import { cacheScopeId } from '@penstock/store';
import { CACHES } from '../world/sim-documents.ts';
import { sumOf } from '../world/sim-objects.ts';
import type { SimStorage } from '../world/storage.ts';
import type { SimStore, StoredDocument } from '../world/store.ts';
import type { World } from '../world/world.ts';
import type { RunTruth } from './run-truth.ts';

interface Observed {
  readonly world: World;
  readonly runs: ReadonlyMap<string, RunTruth>;
  readonly storage: SimStorage;
  readonly store: SimStore;
  readonly isDeleted: (runId: string) => boolean;
  readonly isDisturbed: (runId: string) => boolean;
}

/** A list of files, as a run's journal names it. */
interface Named {
  readonly manifest: string;
  readonly bytes: number;
  readonly expiresAt: number;
}

/** A success that has left something under a key. */
interface Left {
  readonly sha256: string;
  readonly isTrusted: boolean;
}

const KEPT = 'kept_artifacts';

export class KeptRules {
  readonly #observed: Observed;
  readonly #world: World;
  /** What each list names, by run and hash, for it is gone when it is asked for. */
  readonly #contents = new Map<string, readonly string[]>();
  /** By scope and key. */
  readonly #left = new Map<string, Left[]>();

  constructor(observed: Observed) {
    this.#observed = observed;
    this.#world = observed.world;
  }

  /** It is committed. */
  happened(run: RunTruth, event: RunEvent, disturbed: boolean): void {
    if (event.type !== 'stage_completed') return;
    if (!disturbed && event.artifacts !== undefined) this.#checkStored(run.id, event.artifacts);
    if (event.status !== 'SUCCESS') {
      this.#check(event.caches === undefined, 'P33', `a stage of run ${run.id} has not succeeded, and leaves a cache`);
      return;
    }
    for (const { key, sha256 } of event.caches ?? []) {
      const scope = writtenBy(run.state);
      if (scope === undefined) continue;
      const id = `${scope} ${key}`;
      const left = { sha256, isTrusted: isTrusted(run.state) };
      this.#left.set(id, [...(this.#left.get(id) ?? []), left]);
    }
  }

  objectDeleted(objectKey: string): void {
    const [prefix, owner = '', sha256 = ''] = objectKey.split('/');
    if (prefix !== 'artifacts' || this.#observed.isDisturbed(owner)) return;
    const by = this.#namedIn(owner).find((named) => this.#namesOf(owner, named.manifest).includes(sha256));
    this.#check(by === undefined, 'P32', `${objectKey} is deleted, and the list ${by?.manifest ?? ''} names it`);
  }

  changed(collection: string, before: StoredDocument | undefined, after: StoredDocument | undefined): void {
    if (collection !== CACHES) return;
    const { scope, cacheKey, sha256 } = after ?? before ?? { id: '' };
    const id = `${String(scope)} ${String(cacheKey)}`;
    if (after === undefined) {
      const isThere = this.#observed.storage.objects.get(`caches/${String(scope)}/${String(sha256)}`);
      this.#check(
        isThere === undefined || sumOf(isThere.bytes) !== sha256,
        'P33',
        `the entry of the cache ${id} is removed, and its archive is there`,
      );
      this.#world.mark('cache entry removed');
      return;
    }
    if (before !== undefined) {
      this.#check(before['sha256'] === sha256, 'P33', `the cache ${id} stands for another archive than it did`);
      return;
    }
    this.#world.mark('cache entry written');
    if (this.#isAnyDisturbed()) return;
    this.#check(
      this.#left.get(id)?.some((left) => left.sha256 === sha256) === true,
      'P33',
      `the entry of the cache ${id} is of no committed success`,
    );
  }

  cacheRestored(runId: string, { scope, key, sha256 }: FoundCache, bytes: Uint8Array): void {
    const run = this.#observed.runs.get(runId);
    this.#check(sumOf(bytes) === sha256, 'P33', `run ${runId} is given a damaged cache`);
    if (run === undefined || this.#isAnyDisturbed()) return;
    this.#check(
      readableBy(run.state).has(scope),
      'P33',
      `run ${runId} is given a cache of a scope that it does not read`,
    );
    const by = this.#left.get(`${scope} ${key}`)?.filter((left) => left.sha256 === sha256) ?? [];
    this.#check(
      isTrusted(run.state) ? by.some((left) => left.isTrusted) : by.length > 0,
      'P33',
      `run ${runId} is given a cache that no run has left which it may trust`,
    );
    if (!isTrusted(run.state)) this.#world.mark('cache restored without trust');
  }

  keptMissing(runId: string, manifest: string, why: string): void {
    if (this.#observed.isDisturbed(runId)) return;
    const isNamed = this.#namedIn(runId).some((named) => named.manifest === manifest);
    this.#check(!isNamed, 'P32', `the list ${manifest} of run ${runId} cannot be had: ${why}`);
    this.#world.mark('kept files asked for in vain');
  }

  /** In a healed world: what nobody names is gone, and what is counted is what is named. */
  missing(): string | undefined {
    const { storage, store, isDisturbed } = this.#observed;
    for (const objectKey of storage.objects.keys()) {
      const [prefix, owner = '', sha256 = ''] = objectKey.split('/');
      if (isDisturbed(owner)) continue;
      const isNamed =
        prefix === 'artifacts'
          ? this.#namedIn(owner).some(({ manifest }) => this.#namesOf(owner, manifest).includes(sha256))
          : this.#rows(CACHES).some((row) => row['scope'] === owner && row['sha256'] === sha256);
      if (!isNamed) return `${objectKey} is kept, and nobody names it`;
    }
    const counted = new Map<string, unknown>();
    for (const row of this.#rows(KEPT)) counted.set(row.id, row['bytes']);
    const named = new Map<string, number>();
    for (const { id } of this.#observed.runs.values())
      for (const { manifest, bytes } of isDisturbed(id) ? [] : this.#namedIn(id)) named.set(`${id}|${manifest}`, bytes);
    for (const [id, bytes] of named)
      if (!store.up || counted.get(id) !== bytes) return `the list ${id} of ${bytes} bytes is not counted`;
    const stray = [...counted.keys()].find((id) => !named.has(id) && !isDisturbed(id.split('|')[0] ?? ''));
    return stray && `the list ${stray} is counted, and nobody names it`;
  }

  #rows(collection: string): readonly StoredDocument[] {
    return [...(this.#observed.store.collections.get(collection)?.values() ?? [])];
  }

  /** Lists whose files lie in the run: its own, and those that others have taken over, as far as they have not expired. */
  #namedIn(runId: string): readonly Named[] {
    const { runs, isDeleted } = this.#observed;
    const own = runs.get(runId);
    const named: Named[] = [];
    const add = ({ stages }: RunState, keptIn: string | undefined): void => {
      for (const { artifacts } of stages.touched())
        if (artifacts !== undefined && artifacts.run === keptIn && artifacts.expiresAt > this.#world.wallClock())
          named.push(artifacts);
    };
    if (own !== undefined && !isDeleted(runId)) add(own.state, undefined);
    for (const { id, state } of runs.values()) if (state.lineage !== undefined && !isDeleted(id)) add(state, runId);
    return named;
  }

  #namesOf(runId: string, manifest: string): readonly string[] {
    return this.#contents.get(`${runId} ${manifest}`) ?? [manifest];
  }

  #checkStored(runId: string, { manifest, bytes }: Named): void {
    const { objects } = this.#observed.storage;
    const list = objects.get(`artifacts/${runId}/${manifest}`);
    this.#check(list !== undefined, 'P32', `run ${runId} names the list ${manifest}, which is not stored`);
    if (list === undefined) return;
    const files = decodeManifest(Buffer.from(list.bytes));
    const sizes = new Map(files.map(({ sha256, sizeBytes }) => [sha256, sizeBytes]));
    for (const sha256 of sizes.keys())
      this.#check(
        objects.has(`artifacts/${runId}/${sha256}`),
        'P32',
        `run ${runId} names the list ${manifest}, whose content ${sha256} is not stored`,
      );
    const sum = [...sizes.values()].reduce((all, size) => all + size, 0);
    this.#check(sum === bytes, 'P32', `run ${runId} counts ${bytes} bytes, its list ${manifest} names ${sum}`);
    this.#contents.set(`${runId} ${manifest}`, [manifest, ...sizes.keys()]);
    this.#world.mark(isEnded(this.#observed.runs.get(runId)?.state.status ?? 'QUEUED') ? 'kept late' : 'files kept');
  }

  #isAnyDisturbed(): boolean {
    const { profile, witness } = this.#world;
    return Array.from({ length: profile.partitions }, (_, partition) => partition).some((partition) =>
      witness.isPartitionDisturbed(partition),
    );
  }

  #check(holds: boolean, rule: string, message: string): void {
    this.#world.check(holds, rule, message);
  }
}

/** By what the delivery says. */
function isTrusted({ origin }: RunState): boolean {
  return origin.trusted !== false;
}

function scopeAt(state: RunState, ref: string): string {
  const { tenant, pipelineName, origin } = state;
  const isOfRepository = origin.repository !== undefined;
  return cacheScopeId({
    tenant,
    repository: isOfRepository ? `${origin.provider ?? ''}/${origin.repository}` : '',
    pipeline: isOfRepository ? '' : pipelineName,
    ref,
  });
}

/** The ref of a branch; a pull request has a place of its own, and a fork's another; nobody else finds what an edited file leaves. */
function ownRef({ origin: { ref = '', pullRequest, trusted } }: RunState): string {
  if (pullRequest === undefined) return ref;
  return `pull/${pullRequest.number}${trusted === false ? '/untrusted' : ''}`;
}

function writtenBy(state: RunState): string | undefined {
  if (!isTrusted(state) && state.origin.pullRequest?.fork !== true) return undefined;
  return scopeAt(state, state.lineage?.edited === true ? `rerun/${state.id}` : ownRef(state));
}

/** Its own, the target of its pull request, the default branch. */
function readableBy(state: RunState): ReadonlySet<string> {
  const { pullRequest, defaultBranch, repository } = state.origin;
  const written = writtenBy(state);
  if (written === undefined) return new Set();
  const branches = repository === undefined ? [] : [pullRequest?.branch, defaultBranch];
  const others = branches.flatMap((branch) => (branch === undefined ? [] : [`refs/heads/${branch}`]));
  return new Set([written, ...[ownRef(state), ...others].map((ref) => scopeAt(state, ref))]);
}
