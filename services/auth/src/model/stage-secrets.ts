/**
 * The secrets of stages: set, listed, deleted, and found for a stage that names them. Values are sealed under a master key
 * before they reach the store, and nothing here answers one but `open`.
 */
import { createHash } from 'node:crypto';
import type { SecretInfo, SecretScope } from '@penstock/identity';
import { Conflict } from '@penstock/errors';
import { insertWithin, type Collection, type DocumentOf, type DocumentStore } from '@penstock/store';
import type { MasterKeys } from './master-keys.ts';
import { stageSecretsSpec, stageSecretUsesSpec } from './collections.ts';
import { checkName, checkProvider, checkRefs, checkScope, checkValue } from './stage-secret-rules.ts';

/** Each is something that somebody has to change when it has leaked. */
const SECRETS_MAX = 100;
/** A set that meets another of the same secret begins again. */
const TRIES_MAX = 5;

interface NewSecret extends SecretScope {
  readonly name: string;
  readonly value: string;
  readonly refs?: readonly string[] | undefined;
}

type SecretRow = Omit<DocumentOf<typeof stageSecretsSpec>, 'sealed'>;

/** A secret as it stands, without its value. */
export interface KeptSecret {
  readonly id: string;
  readonly name: string;
  readonly repository: string;
  readonly pipeline: string;
  readonly refs: readonly string[] | null;
}

export class StageSecrets {
  readonly #secrets: Collection<typeof stageSecretsSpec>;
  readonly #uses: Collection<typeof stageSecretUsesSpec>;
  readonly #keys: MasterKeys;
  readonly #now: () => number;

  constructor(store: DocumentStore, keys: MasterKeys, now: () => number) {
    this.#secrets = store.collection(stageSecretsSpec);
    this.#uses = store.collection(stageSecretUsesSpec);
    this.#keys = keys;
    this.#now = now;
  }

  /** Throws `BadUserInput`, `Conflict` over the number that a tenant may have, `Unavailable` without a master key. */
  async set({ name, value, refs, ...scope }: NewSecret): Promise<SecretInfo> {
    checkName(name);
    checkScope(scope);
    checkProvider(scope);
    checkValue(value);
    checkRefs(refs);
    const id = idOf(scope, name);
    const { sealed, keyId } = await this.#keys.seal(id, Buffer.from(value, 'utf8'));
    for (let tries = 1; tries <= TRIES_MAX; tries += 1) {
      const present = await this.#secrets.get(id, { parts: [] });
      // Later than what it replaces, whatever the clock says.
      const updatedAt = Math.max(this.#now(), (present?.updatedAt ?? 0) + 1);
      const row = {
        id,
        tenant: scope.tenant,
        name,
        repository: scope.repository ?? '',
        pipeline: scope.pipeline ?? '',
        refs: refs === undefined ? '' : JSON.stringify(refs),
        keyId,
        createdAt: present?.createdAt ?? updatedAt,
        updatedAt,
        revision: 0,
      };
      const isSet = present === null ? await this.#insert({ ...row, sealed }) : await this.#replace({ ...row, sealed });
      if (isSet) return shown(row, (await this.#uses.get(id))?.lastUsedAt);
    }
    throw new Conflict(`The secret '${name}' is being set by others at the same time: try again.`);
  }

  /** Whether there was one of this name in exactly this scope. */
  async delete(scope: SecretScope, name: string): Promise<boolean> {
    checkName(name);
    checkScope(scope);
    const id = idOf(scope, name);
    // A store may not know that it was this that has deleted it; the audit log is to have it all the same.
    const wasThere = (await this.#secrets.get(id, { parts: [] })) !== null;
    await this.#secrets.delete(id);
    await this.#uses.delete(id);
    return wasThere;
  }

  /** All that the tenant has; answers how many. */
  async deleteAll(tenant: string): Promise<number> {
    for (let deleted = 0; ;) {
      const rows = await this.#rowsOf(tenant);
      for (const { id } of rows) {
        if (await this.#secrets.delete(id)) deleted += 1;
        await this.#uses.delete(id);
      }
      if (rows.length < 2 * SECRETS_MAX) return deleted;
    }
  }

  /** By name, the widest of a name first. */
  async list({ tenant, repository }: Pick<SecretScope, 'tenant' | 'repository'>): Promise<SecretInfo[]> {
    const all = await this.#rowsOf(tenant);
    const rows = repository === undefined ? all : all.filter((row) => isSame(row.repository, repository));
    const uses = rows.length === 0 ? [] : await this.#uses.getMany(rows.map(({ id }) => id));
    const usedAt = new Map(uses.map(({ id, lastUsedAt }) => [id, lastUsedAt]));
    return rows.toSorted((a, b) => compare(sortKey(a), sortKey(b))).map((row) => shown(row, usedAt.get(row.id)));
  }

  /** All that the tenant has: what a run gets is chosen among them. */
  async ofTenant(tenant: string): Promise<KeptSecret[]> {
    return (await this.#rowsOf(tenant)).map(({ id, name, repository, pipeline, refs }) => ({
      id,
      name,
      repository,
      pipeline,
      refs: refsOf(refs),
    }));
  }

  /** Null: it has been deleted meanwhile, or no key of this server opens it. */
  async open(id: string): Promise<Uint8Array | null> {
    const row = await this.#secrets.get(id);
    return row === null ? null : await this.#keys.open(id, String(row.sealed));
  }

  /** Notes that a stage was given them. */
  async used(ids: readonly string[]): Promise<void> {
    const lastUsedAt = this.#now();
    if (ids.length > 0) await this.#uses.replaceNewer(ids.map((id) => ({ id, lastUsedAt, revision: 0 })));
  }

  /** False: another one of its name came first. Throws `Conflict` where the tenant has as many as it may have. */
  async #insert(row: DocumentOf<typeof stageSecretsSpec>): Promise<boolean> {
    const refusal = (): Error =>
      new Conflict(`A tenant has at most ${SECRETS_MAX} secrets: delete one that is not needed any more.`);
    const limit = { where: { tenant: row.tenant }, max: SECRETS_MAX, refusal };
    return (await insertWithin(this.#secrets, row, limit)) === 'inserted';
  }

  /** False: a later one stands there. */
  async #replace(row: DocumentOf<typeof stageSecretsSpec>): Promise<boolean> {
    return (await this.#secrets.replaceNewer([row])).stale.length === 0;
  }

  async #rowsOf(tenant: string): Promise<SecretRow[]> {
    // A process that ends while it sets one leaves one too many.
    return await this.#secrets.list({ where: { tenant }, limit: 2 * SECRETS_MAX, parts: [] });
  }
}

function idOf({ tenant, repository = '', pipeline = '' }: SecretScope, name: string): string {
  return createHash('sha256')
    .update(JSON.stringify([tenant, repository.toLowerCase(), pipeline, name]))
    .digest('hex');
}

/** Git hosts take no notice of case. */
export function isSame(repository: string, other: string): boolean {
  return repository.toLowerCase() === other.toLowerCase();
}

function refsOf(refs: string): readonly string[] | null {
  return refs === '' ? null : (JSON.parse(refs) as readonly string[]);
}

function shown(row: SecretRow, lastUsedAt: number | undefined): SecretInfo {
  return {
    name: row.name,
    repository: row.repository === '' ? null : row.repository,
    pipeline: row.pipeline === '' ? null : row.pipeline,
    refs: refsOf(row.refs),
    createdAt: new Date(row.createdAt).toISOString(),
    updatedAt: new Date(row.updatedAt).toISOString(),
    lastUsedAt: lastUsedAt === undefined ? null : new Date(lastUsedAt).toISOString(),
  };
}

function sortKey({ name, repository, pipeline }: SecretRow): string {
  return `${name}\n${repository}\n${pipeline}`;
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
