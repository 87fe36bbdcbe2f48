/**
 * Connected repositories and their secrets. A secret is kept encrypted (AES-256-GCM under a key made from `JWT_SECRET`):
 * with another `JWT_SECRET` they are unreadable, and the repositories have to be connected anew.
 *
 *  CONNECTION-1 Accounts cost nothing, so those that have proved nothing keep nobody who can from connecting a repository: where it has
 *     no place left, the one that has been unproved longest gives way, if that is UNPROVED_MS_KEPT.
 *  CONNECTION-2 Hosts give up after ten seconds: who asks for secrets is answered within STORE_MS, though the store does not answer, with what it
 *     has said within SAID_MS, and that this may be old.
 *
 *  CONNECTION-3 Of what the store has said nothing is forgotten because of other repositories: neither of those that others connect, nor of
 *     names that strangers make up.
 *
 * It remembers what it has read of a repository, for a short time and until `forget`, since every delivery asks.
 */
import { randomBytes } from 'node:crypto';
import { bootMs, within } from '@penstock/async';
import { Conflict } from '@penstock/errors';
import {
  connectionIdOf,
  idOfNamed,
  insertWithin,
  StoreError,
  type Collection,
  type DocumentOf,
  type DocumentStore,
} from '@penstock/store';
import { CloneSecretNames } from './clone-secret-names.ts';
import { connectionsSpec, proofsSpec } from './collections.ts';
import { proofRefOf } from './proof.ts';
import { openText, sealText, type SealingKeys } from './sealed-text.ts';
import type { ProviderName } from '../providers/provider.ts';

export interface Connection {
  /** Made of its names, so that a user has a repository once. */
  readonly id: string;
  readonly userId: string;
  readonly provider: ProviderName;
  readonly repository: string;
  readonly createdAt: number;
  /** The ref that proves it. */
  readonly proofRef: string;
  /** The host on which that was found; null: it has not been. */
  readonly provedHost: string | null;
  /** The name of the secret that it is read with; null: it is read with what the server has. */
  readonly cloneSecret: string | null;
}

export interface ConnectionSecret extends Connection {
  readonly secret: string;
}

export interface KnownSecrets {
  readonly secrets: readonly ConnectionSecret[];
  /** The store cannot be asked now (CONNECTION-2): there may be others. */
  readonly mayBeOld: boolean;
}

/** As somebody writes it: of any case. */
export interface NamedRepository {
  readonly provider: string;
  readonly repository: string;
}

interface Remembered {
  askedAt: number;
  readonly asked: Promise<readonly ConnectionSecret[]>;
  /** What the store has said last. */
  said: { readonly at: number; readonly secrets: readonly ConnectionSecret[] } | undefined;
}

interface ConnectOptions {
  readonly now: number;
  readonly haveToBeProved: boolean;
  readonly cloneSecret?: string | null | undefined;
}

/** How many users may connect one repository: each secret may have to be tried for a signature. */
const PER_REPOSITORY_MAX = 50;
const PER_USER_MAX = 1_000;
/** How long a new connection keeps its place, where there is none left: it can be proved meanwhile. */
const UNPROVED_MS_KEPT = 60 * 60_000;
const SECRET_BYTES = 32;
const REMEMBERED_MAX = 10_000;
/** How late another ingest's change is seen where the message about it is lost. */
const REMEMBERED_MS = 10_000;
const STORE_MS = 2_000;
/** As long as an access token is good for: a connection that ended while neither message nor store told of it. */
const SAID_MS = 15 * 60_000;
/** Documents that the store gives at once. */
const PROOFS_READ = 500;

type ConnectionRow = Omit<DocumentOf<typeof connectionsSpec>, 'secret'>;

/** Another one each time that the repository is connected. */
export function shownIdOf({ id, createdAt }: Pick<Connection, 'id' | 'createdAt'>): string {
  return idOfNamed(createdAt, id);
}

export class ConnectionsRepository {
  readonly cloneSecrets: CloneSecretNames;
  readonly #connections: Collection<typeof connectionsSpec>;
  readonly #proofs: Collection<typeof proofsSpec>;
  readonly #keys: SealingKeys;
  readonly #clock: () => number;
  readonly #remembered = new Map<string, Remembered>();

  /** The store has to be opened with `ingestCollections` among its collections. */
  constructor(store: DocumentStore, keys: SealingKeys, clock: () => number = bootMs) {
    this.#clock = clock;
    this.cloneSecrets = new CloneSecretNames(store);
    this.#connections = store.collection(connectionsSpec);
    this.#proofs = store.collection(proofsSpec);
    this.#keys = keys;
  }

  /** The secret is in this answer only. `haveToBeProved`: connections count for nothing until they are. Throws `Conflict`. */
  async connect(
    userId: string,
    provider: ProviderName,
    repository: string,
    { now, cloneSecret = null, haveToBeProved }: ConnectOptions,
  ): Promise<ConnectionSecret> {
    const repositoryKey = repository.toLowerCase();
    const full = new Conflict(`The repository '${repository}' is connected by ${PER_REPOSITORY_MAX} users already.`);
    const perRepository = { where: { provider, repositoryKey }, max: PER_REPOSITORY_MAX, refusal: () => full };
    const perUser = {
      where: { userId },
      orderBy: { field: 'createdAt', direction: 'asc' },
      max: PER_USER_MAX,
      refusal: () => new Conflict(`You have connected ${PER_USER_MAX} repositories already; disconnect some first.`),
    } as const;
    const secret = randomBytes(SECRET_BYTES).toString('base64url');
    const fields = { id: connectionIdOf(userId, provider, repository), userId, provider, repository, createdAt: now };
    const proofRef = proofRefOf(fields, this.#keys[0]);
    const connection: Connection = { ...fields, proofRef, provedHost: null, cloneSecret };
    const row = { ...fields, repositoryKey, secret: sealText(this.#keys, connection.id, secret) };
    const insert = (): Promise<'inserted' | 'duplicate'> =>
      insertWithin(this.#connections, row, perUser, perRepository);
    const inserted = await insert().catch(async (error: unknown) => {
      if (error !== full || !haveToBeProved || !(await this.#makeWay(row, now))) throw error;
      return await insert();
    });
    if (inserted === 'duplicate')
      throw new Conflict(`You have connected '${repository}' already; to get another secret, disconnect it first.`);
    // Whoever has this answer can have it delivered to, and nobody else; what an earlier connection has left goes with it.
    await this.cloneSecrets.set(connection, cloneSecret, now);
    this.forget(connection);
    return { ...connection, secret };
  }

  /** The newest first. */
  async of(userId: string): Promise<Connection[]> {
    const rows = await this.#connections.list({
      where: { userId },
      orderBy: { field: 'createdAt', direction: 'desc' },
      limit: PER_USER_MAX,
      parts: [],
    });
    return await this.#shown(rows);
  }

  /** By the id that is shown of it, or by its own, which those who have kept it from before were shown. Null as `find`. */
  async shownAs(userId: string, id: string): Promise<Connection | null> {
    const own = await this.find(userId, id);
    if (own !== null) return own;
    return (await this.of(userId)).find((connection) => shownIdOf(connection) === id) ?? null;
  }

  /** Null: there is none of this user's with this id. */
  async find(userId: string, id: string): Promise<Connection | null> {
    if (id === '' || id.length > 100) return null;
    const row = await this.#connections.get(id, { parts: [] });
    const [found] = row?.userId === userId ? await this.#shown([row]) : [];
    return found ?? null;
  }

  /** By its names, whoever asks; null: the user has not connected it. */
  async named(userId: string, provider: ProviderName, repository: string): Promise<Connection | null> {
    return await this.find(userId, connectionIdOf(userId, provider, repository));
  }

  /** Keeps what it is read with from now on. Null: what the server has. */
  async setCloneSecret(connection: Connection, name: string | null, now: number): Promise<Connection> {
    await this.cloneSecrets.set(connection, name, now);
    // It may have been proved meanwhile.
    const standing = await this.find(connection.userId, connection.id);
    if (standing !== null && standing.provedHost !== null && standing.provedHost !== connection.provedHost)
      await this.cloneSecrets.proved(standing, standing.provedHost, now);
    this.forget(connection);
    return { ...connection, cloneSecret: name };
  }

  /** Keeps that the ref of this connection was found on this host. */
  async prove(connection: Connection, host: string, now: number): Promise<void> {
    const { id, createdAt } = connection;
    // First: a secret that is for no host in particular is not given to who clones.
    await this.cloneSecrets.proved(connection, host, now);
    const proof = { id, createdAt, host, provedAt: now };
    const isKept = (await this.#proofs.insert(proof)) === 'inserted';
    if (!isKept && (await this.#proofs.get(id))?.createdAt !== createdAt) {
      // What a connection that is gone has left says nothing about this one. Of this one it stays: without it a push would be ignored.
      await this.#proofs.delete(id);
      await this.#proofs.insert(proof);
    }
    // Another may have been named in between, by who did not know of the host.
    await this.cloneSecrets.proved(connection, host, now);
    this.forget(connection);
  }

  /** False: there is none of this user's with this id. */
  async disconnect(userId: string, id: string): Promise<boolean> {
    if (id === '' || id.length > 100) return false;
    const found = await this.#connections.get(id, { parts: [] });
    if (found?.userId !== userId) return false;
    await this.#proofs.delete(id);
    const gone = await this.#connections.delete(id);
    await this.cloneSecrets.forget(found);
    this.forget(found);
    return gone;
  }

  /** Ends this very connection, where it has not ended; one that was made since stays. '': the schedule of a repository ends that nobody has connected. */
  async end(userId: string, id: string, createdAt: number): Promise<void> {
    if (id === '') return;
    if ((await this.find(userId, id))?.createdAt === createdAt) await this.disconnect(userId, id);
    // Who began to end it may not have come to that.
    else await this.cloneSecrets.forget({ id, createdAt });
  }

  /** Those of a repository, with what its deliveries may be signed with. Keeps CONNECTION-2. */
  async secretsOf(provider: ProviderName, repository: string): Promise<KnownSecrets> {
    const known = this.#rememberedOf({ provider, repository });
    try {
      const secrets = await within(STORE_MS, known.asked, () => null);
      if (secrets !== null) return { secrets, mayBeOld: false };
    } catch (error) {
      if (!(error instanceof StoreError && error.retryable)) throw error;
    }
    const { said } = known;
    const isLong = said === undefined || this.#clock() - said.at >= SAID_MS;
    return { secrets: isLong ? [] : said.secrets, mayBeOld: true };
  }

  #rememberedOf(named: NamedRepository): Remembered {
    const name = nameOf(named);
    const known = this.#remembered.get(name);
    const askedAt = this.#clock();
    if (known !== undefined && askedAt - known.askedAt < REMEMBERED_MS) return known;
    if (this.#remembered.size >= REMEMBERED_MAX) this.#makeRoom();
    const asked = this.#read(named.provider, named.repository.toLowerCase());
    const anew: Remembered = { askedAt, asked, said: known?.said };
    this.#remembered.set(name, anew);
    asked.then(
      (secrets) => (anew.said = { at: askedAt, secrets }),
      () => (anew.askedAt = Number.NEGATIVE_INFINITY),
    );
    return anew;
  }

  /** Keeps CONNECTION-3, where there are not too many of those that somebody has connected. */
  #makeRoom(): void {
    for (const [name, { said }] of this.#remembered)
      if (said === undefined || said.secrets.length === 0) this.#remembered.delete(name);
    if (this.#remembered.size > REMEMBERED_MAX / 2) this.#remembered.clear();
  }

  /** It was connected or disconnected, here or elsewhere. */
  forget(named: NamedRepository): void {
    this.#remembered.delete(nameOf(named));
  }

  /** Keeps CONNECTION-1. Nothing has come of the deliveries of what gives way, so nothing else ends with it. */
  async #makeWay({ userId, provider, repositoryKey }: ConnectionRow, now: number): Promise<boolean> {
    const rows = await this.#connections.list({
      where: { provider, repositoryKey },
      limit: PER_REPOSITORY_MAX,
      parts: [],
    });
    if (rows.some((row) => row.userId === userId)) return false;
    const [longest] = (await this.#shown(rows))
      .filter(({ provedHost, createdAt }) => provedHost === null && now - createdAt >= UNPROVED_MS_KEPT)
      .toSorted((a, b) => a.createdAt - b.createdAt);
    return longest !== undefined && (await this.disconnect(longest.userId, longest.id));
  }

  async #read(provider: string, repositoryKey: string): Promise<ConnectionSecret[]> {
    const rows = await this.#connections.list({ where: { provider, repositoryKey }, limit: PER_REPOSITORY_MAX });
    const secrets = new Map(rows.map((row) => [row.id, openText(this.#keys, row.id, row.secret)]));
    return (await this.#shown(rows)).flatMap((connection) => {
      const secret = secrets.get(connection.id) ?? null;
      return secret === null ? [] : [{ ...connection, secret }];
    });
  }

  async #shown(rows: readonly ConnectionRow[]): Promise<Connection[]> {
    const hosts = new Map<string, string>();
    const cloneSecrets = new Map<string, string>();
    for (let from = 0; from < rows.length; from += PROOFS_READ) {
      const part = rows.slice(from, from + PROOFS_READ);
      const createdAt = new Map(part.map((row) => [row.id, row.createdAt]));
      for (const proof of await this.#proofs.getMany(part.map(({ id }) => id)))
        if (proof.createdAt === createdAt.get(proof.id)) hosts.set(proof.id, proof.host);
      for (const [id, name] of await this.cloneSecrets.of(part)) cloneSecrets.set(id, name);
    }
    return rows.map(({ id, userId, provider, repository, createdAt }) => ({
      ...{ id, userId, provider: provider as ProviderName, repository, createdAt },
      proofRef: proofRefOf({ id, createdAt }, this.#keys[0]),
      provedHost: hosts.get(id) ?? null,
      cloneSecret: cloneSecrets.get(id) ?? null,
    }));
  }
}

function nameOf({ provider, repository }: NamedRepository): string {
  return `${provider} ${repository.toLowerCase()}`;
}
