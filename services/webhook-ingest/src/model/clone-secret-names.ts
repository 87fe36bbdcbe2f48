/**
 * Which connections are read with a secret of their own. Auth reads it too, at each fetch: what stands here counts from then on.
 *
 *  CLONENAMES-1 What is left of a connection that is gone says nothing about one that has the same names.
 *  CLONENAMES-2 Another name replaces one in one step: at no moment is the repository read with what the server has.
 */
import { Conflict } from '@penstock/errors';
import { cloneSecretsSpec, connectionIdOf, type Collection, type DocumentStore } from '@penstock/store';

/** A connection, as far as it counts here. */
interface Connected {
  readonly id: string;
  readonly createdAt: number;
  readonly provedHost: string | null;
}

/** A change that meets another one of the same connection begins again. */
const TRIES_MAX = 5;

export class CloneSecretNames {
  readonly #names: Collection<typeof cloneSecretsSpec>;

  constructor(store: DocumentStore) {
    this.#names = store.collection(cloneSecretsSpec);
  }

  /** Those that have one, by their ids. At most as many as the store gives at once. */
  async of(connections: readonly Pick<Connected, 'id' | 'createdAt'>[]): Promise<ReadonlyMap<string, string>> {
    const rows = connections.length === 0 ? [] : await this.#names.getMany(connections.map(({ id }) => id));
    const createdAt = new Map(connections.map((connection) => [connection.id, connection.createdAt]));
    return new Map(rows.filter((row) => row.createdAt === createdAt.get(row.id)).map(({ id, name }) => [id, name]));
  }

  /** Whether the repository is read with one. */
  async has(userId: string, provider: string, repository: string): Promise<boolean> {
    return (await this.#names.get(connectionIdOf(userId, provider, repository))) !== null;
  }

  /** Null: it has none any more. Keeps CLONENAMES-2. */
  async set(connection: Connected, name: string | null, now: number): Promise<void> {
    if (name === null) await this.#names.delete(connection.id);
    else await this.#put({ ...connection, host: connection.provedHost ?? '', name }, now);
  }

  /** From now on it is for this host alone. */
  async proved(connection: Connected, host: string, now: number): Promise<void> {
    const name = (await this.of([connection])).get(connection.id);
    if (name !== undefined) await this.#put({ ...connection, host, name }, now);
  }

  /** Of this very connection, which is gone. */
  async forget({ id, createdAt }: Pick<Connected, 'id' | 'createdAt'>): Promise<void> {
    if ((await this.of([{ id, createdAt }])).has(id)) await this.#names.delete(id);
  }

  async #put(
    {
      id,
      createdAt,
      host,
      name,
    }: Pick<Connected, 'id' | 'createdAt'> & { readonly host: string; readonly name: string },
    now: number,
  ): Promise<void> {
    for (let tries = 1; tries <= TRIES_MAX; tries += 1) {
      const changedAt = Math.max(now, ((await this.#names.get(id))?.changedAt ?? 0) + 1);
      const { stale } = await this.#names.replaceNewer([{ id, createdAt, host, name, changedAt, step: 0 }]);
      if (stale.length === 0) return;
    }
    throw new Conflict('The connection is being changed by others at the same time: try again.');
  }
}
