/** Tokens that attach runners (`rt_`, P37): made, listed, looked up by their hash, revoked. Their text is shown once and kept nowhere. */
import { BadUserInput, Conflict, NotFound } from '@penstock/errors';
import { newRunnerToken, personalTokenHash, type CreatedRunnerToken } from '@penstock/identity';
import { parseDuration } from '@penstock/config';
import { isPlainNameWithin } from '@penstock/pipeline';
import { insertWithin, newId, type Collection, type DocumentOf, type DocumentStore } from '@penstock/store';
import { runnerTokensSpec } from './collections.ts';
import { isId } from './users.ts';

export interface RunnerTokenRow {
  readonly id: string;
  readonly name: string;
  readonly labels: readonly string[];
  readonly untrusted: boolean;
  /** Whose stages alone its runners are given; null: everybody's. */
  readonly tenant: string | null;
  readonly createdAt: number;
  /** Milliseconds since 1970; null: never. */
  readonly expiresAt: number | null;
}

/** Each is a secret that somebody has to look after. */
const TOKENS_MAX = 999;
/** A tenant has fewer machines than this server has. */
const TOKENS_PER_TENANT_MAX = 20;
/** Of tenants together, in one list. */
const LISTED_MAX = 1_000;
const LABELS_MAX = 50;
const NAME_LENGTH_MAX = 100;
/** As `runs_on` and `SERVICE_RUNNER_LABELS` take them; what a runner says of itself by `=` is not for a token to say. */
const LABEL = /^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$/u;
const EXPIRES = { minMs: 60_000, maxMs: 10 * 366 * 24 * 60 * 60_000 };
/** In the store, of a token without an end. */
const NEVER = 0;
/** In the store, of a token for the whole installation. */
const EVERYBODY = '';

export class RunnerTokens {
  readonly #tokens: Collection<typeof runnerTokensSpec>;
  readonly #now: () => number;

  constructor(store: DocumentStore, now: () => number) {
    this.#tokens = store.collection(runnerTokensSpec);
    this.#now = now;
  }

  /** Throws `BadUserInput` on a bad name, label or duration, `Conflict` over the number that there may be. */
  async create(wish: {
    readonly name: string;
    readonly labels: readonly string[];
    readonly untrusted: boolean;
    readonly tenant?: string | undefined;
    readonly expires?: string | undefined;
  }): Promise<CreatedRunnerToken> {
    const now = this.#now();
    const labels = labelsOf(wish.labels);
    const name = wish.name.trim();
    if (name !== '' && !isPlainNameWithin(name, NAME_LENGTH_MAX))
      throw new BadUserInput(
        `The name of a runner token has at most ${NAME_LENGTH_MAX} visible characters on one line.`,
        { field: 'name' },
      );
    const lives = wish.expires === undefined ? null : livesFor(wish.expires);
    const tenant = wish.tenant ?? EVERYBODY;
    const max = tenant === EVERYBODY ? TOKENS_MAX : TOKENS_PER_TENANT_MAX;
    const token = newRunnerToken();
    const row = {
      id: newId(now),
      hash: personalTokenHash(token),
      name,
      labels: JSON.stringify(labels),
      untrusted: wish.untrusted,
      tenant,
      createdAt: now,
      expiresAt: lives === null ? NEVER : now + lives,
    };
    const refusal = (): Error =>
      new Conflict(`There are ${max} runner tokens already: revoke one that is not needed any more.`);
    await insertWithin(this.#tokens, row, { where: { tenant }, max, refusal });
    const { id, createdAt, expiresAt, untrusted, tenant: whose } = rowOf(row);
    return {
      id,
      name,
      labels,
      untrusted,
      tenant: whose,
      createdAt: new Date(createdAt).toISOString(),
      expiresAt: expiresAt === null ? null : new Date(expiresAt).toISOString(),
      token,
    };
  }

  /**
   * The oldest first, those that are over too: they say why a runner is not let in any more. Without a tenant all of the installation's,
   * and with them as many of the oldest of tenants.
   */
  async list(tenant?: string): Promise<RunnerTokenRow[]> {
    const orderBy = { field: 'id', direction: 'asc' } as const;
    if (tenant !== undefined) {
      const own = await this.#tokens.list({ where: { tenant }, orderBy, limit: TOKENS_PER_TENANT_MAX });
      return own.map(rowOf);
    }
    const [shared, oldest] = await Promise.all([
      this.#tokens.list({ where: { tenant: EVERYBODY }, orderBy, limit: TOKENS_MAX }),
      this.#tokens.list({ orderBy, limit: LISTED_MAX }),
    ]);
    const rows = new Map([...oldest, ...shared].map((row) => [row.id, row]));
    return [...rows.values()].toSorted((a, b) => (a.id < b.id ? -1 : 1)).map(rowOf);
  }

  /** Throws `NotFound`, also where a tenant is named and it is another's. */
  async revoke(id: string, tenant?: string): Promise<void> {
    const row = isId(id) ? await this.#tokens.get(id) : null;
    const isTheirs = row !== null && (tenant === undefined || row.tenant === tenant);
    if (!isTheirs) throw new NotFound('There is no runner token with this id.');
    // A store may not know that it was this that has deleted it; its runners are to be cut off all the same.
    await this.#tokens.delete(id);
  }

  /** Null: it never was, is revoked, or is over. */
  async livingByHash(hash: string): Promise<RunnerTokenRow | null> {
    const [row] = await this.#tokens.list({ where: { hash }, limit: 1 });
    return this.#ifLiving(row);
  }

  /** Of these, those that live. */
  async livingAmong(ids: readonly string[]): Promise<ReadonlySet<string>> {
    const rows = ids.length === 0 ? [] : await this.#tokens.getMany(ids);
    return new Set(rows.flatMap((row) => this.#ifLiving(row)?.id ?? []));
  }

  #ifLiving(row: DocumentOf<typeof runnerTokensSpec> | undefined): RunnerTokenRow | null {
    if (row === undefined) return null;
    return row.expiresAt === NEVER || row.expiresAt > this.#now() ? rowOf(row) : null;
  }
}

function rowOf(row: DocumentOf<typeof runnerTokensSpec>): RunnerTokenRow {
  const { id, name, labels, untrusted, tenant, createdAt, expiresAt } = row;
  return {
    id,
    name,
    labels: JSON.parse(labels) as string[],
    untrusted,
    tenant: tenant === EVERYBODY ? null : tenant,
    createdAt,
    expiresAt: expiresAt === NEVER ? null : expiresAt,
  };
}

function labelsOf(labels: readonly string[]): string[] {
  const bad = labels.find((label) => !LABEL.test(label));
  if (bad !== undefined)
    throw new BadUserInput(
      `'${bad.slice(0, 100).toWellFormed()}' is not a label: 1 to 64 letters, digits, '_', '.' and '-'.`,
      { field: 'labels' },
    );
  const each = [...new Set(labels)].toSorted();
  if (each.length > LABELS_MAX)
    throw new BadUserInput(`A runner token has at most ${LABELS_MAX} labels.`, { field: 'labels' });
  return each;
}

function livesFor(expires: string): number {
  const parsed = parseDuration(expires, EXPIRES);
  if ('problem' in parsed)
    throw new BadUserInput(`'expires' ${parsed.problem}; leave it out for a token without an end.`, {
      field: 'expires',
    });
  return parsed.value;
}
