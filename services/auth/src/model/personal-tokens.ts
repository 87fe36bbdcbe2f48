/** Personal tokens (`svc_`): made, listed, looked up by their hash, revoked. Their text is shown once and kept nowhere. */
import { parseDuration } from '@penstock/config';
import { BadUserInput, Conflict, NotFound } from '@penstock/errors';
import {
  newPersonalToken,
  personalTokenHash,
  revocationKeys,
  TOKEN_SCOPES,
  type CreatedToken,
  type TokenInfo,
  type TokenScope,
} from '@penstock/identity';
import { isPlainNameWithin } from '@penstock/pipeline';
import { insertWithin, newId, type Collection, type DocumentOf, type DocumentStore } from '@penstock/store';
import { personalTokensSpec, tokenUsesSpec } from './collections.ts';
import type { Revocations } from './revocations.ts';
import { isId } from './users.ts';

export interface FoundToken {
  readonly id: string;
  readonly userId: string;
  readonly scopes: readonly TokenScope[];
  /** Milliseconds since 1970; null: never. */
  readonly expiresAt: number | null;
}

const NAME_LENGTH_MAX = 100;
/** How many one user may have: each is a secret that somebody has to look after. */
const TOKENS_MAX = 100;
const USES_MAX = 1_000;
const EXPIRES = { minMs: 60_000, maxMs: 10 * 366 * 24 * 60 * 60_000 };
/** In the store, of a token without an end; of those of earlier releases too. */
const NEVER = 0;

type TokenRow = DocumentOf<typeof personalTokensSpec>;

export class PersonalTokens {
  readonly #tokens: Collection<typeof personalTokensSpec>;
  readonly #uses: Collection<typeof tokenUsesSpec>;
  readonly #revocations: Revocations;
  readonly #now: () => number;

  constructor(store: DocumentStore, revocations: Revocations, now: () => number) {
    this.#tokens = store.collection(personalTokensSpec);
    this.#uses = store.collection(tokenUsesSpec);
    this.#revocations = revocations;
    this.#now = now;
  }

  /** `expires`: a duration. Throws `BadUserInput` on a bad name, scope or duration, `Conflict` over the number that one user may have. */
  async create(userId: string, name: string, scopes: readonly string[], expires?: string): Promise<CreatedToken> {
    const checkedName = nameOf(name);
    const checkedScopes = scopesOf(scopes);
    const livesMs = expires === undefined ? null : livesFor(expires);
    const present = await this.#tokens.list({ where: { userId }, limit: TOKENS_MAX });
    for (const { id } of present.filter((row) => this.#isOver(row))) await this.#forget(id);
    const token = newPersonalToken();
    const now = this.#now();
    const row: TokenRow = {
      id: newId(now),
      userId,
      hash: personalTokenHash(token),
      name: checkedName,
      scopes: checkedScopes.join(','),
      createdAt: now,
      expiresAt: livesMs === null ? NEVER : now + livesMs,
    };
    const refusal = (): Error =>
      new Conflict(`A user has at most ${TOKENS_MAX} tokens: revoke one that is not needed any more.`);
    await insertWithin(this.#tokens, row, { where: { userId }, max: TOKENS_MAX, refusal });
    return {
      id: row.id,
      name: row.name,
      scopes: checkedScopes,
      createdAt: new Date(now).toISOString(),
      expiresAt: expiresAtOf(row),
      token,
    };
  }

  /** The oldest first, also those that are over. */
  async list(userId: string): Promise<TokenInfo[]> {
    const rows = await this.#tokens.list({ where: { userId }, limit: TOKENS_MAX });
    const uses = rows.length === 0 ? [] : await this.#uses.getMany(rows.map(({ id }) => id));
    const usedAt = new Map(uses.map(({ id, lastUsedAt }) => [id, lastUsedAt]));
    return rows.map((row) => {
      const used = usedAt.get(row.id);
      return {
        id: row.id,
        name: row.name,
        scopes: storedScopes(row),
        createdAt: new Date(row.createdAt).toISOString(),
        expiresAt: expiresAtOf(row),
        lastUsedAt: used === undefined ? null : new Date(used).toISOString(),
      };
    });
  }

  /** Throws `NotFound`, the same for a token that is not there and for one of another user. */
  async revoke(userId: string, id: string): Promise<void> {
    const row = isId(id) ? await this.#tokens.get(id) : null;
    if (row === null || row.userId !== userId) throw new NotFound('You have no token with this id.');
    await this.#revocations.revoke(revocationKeys.token(id), this.#now());
    await this.#forget(id);
  }

  /** All of the user's; answers their ids. */
  async revokeAll(userId: string): Promise<readonly string[]> {
    for (const revoked: string[] = []; ;) {
      const rows = await this.#tokens.list({ where: { userId }, limit: TOKENS_MAX });
      for (const { id } of rows) await this.revoke(userId, id);
      revoked.push(...rows.map(({ id }) => id));
      if (rows.length < TOKENS_MAX) return revoked;
    }
  }

  async byHash(hash: string): Promise<FoundToken | null> {
    const [row] = await this.#tokens.list({ where: { hash }, limit: 1 });
    if (row === undefined || this.#isOver(row)) return null;
    const { id, userId, expiresAt } = row;
    return { id, userId, scopes: storedScopes(row), expiresAt: expiresAt === NEVER ? null : expiresAt };
  }

  /** Notes uses of those tokens that still exist. Later times win. */
  async used(uses: readonly { readonly tokenId: string; readonly at: number }[]): Promise<void> {
    const latest = new Map<string, number>();
    for (const { tokenId, at } of uses.slice(0, USES_MAX)) {
      if (isId(tokenId) && Number.isSafeInteger(at)) latest.set(tokenId, Math.max(at, latest.get(tokenId) ?? 0));
    }
    if (latest.size === 0) return;
    const present = await this.#tokens.getMany([...latest.keys()]);
    const rows = present.map(({ id }) => ({ id, lastUsedAt: latest.get(id) ?? 0, revision: 0 }));
    // Half of the store's largest batch at a time.
    for (let from = 0; from < rows.length; from += 250) await this.#uses.replaceNewer(rows.slice(from, from + 250));
  }

  #isOver({ expiresAt }: TokenRow): boolean {
    return expiresAt !== NEVER && expiresAt <= this.#now();
  }

  async #forget(id: string): Promise<void> {
    await this.#tokens.delete(id);
    await this.#uses.delete(id);
  }
}

function nameOf(name: string): string {
  const trimmed = typeof name === 'string' ? name.trim() : '';
  if (!isPlainNameWithin(trimmed, NAME_LENGTH_MAX)) {
    throw new BadUserInput(
      `A token needs a name of 1 to ${NAME_LENGTH_MAX} visible characters on one line, by which its owner knows it again.`,
      { field: 'name' },
    );
  }
  return trimmed;
}

/** Each once, in the order they were asked for: so they are shown. */
function scopesOf(scopes: readonly string[]): TokenScope[] {
  const given = Array.isArray(scopes) ? [...new Set(scopes as readonly string[])] : [];
  const unknown = given.find((scope) => !isScope(scope));
  if (unknown !== undefined)
    throw new BadUserInput(
      `'${String(unknown).slice(0, 50)}' is not a scope of a token; the scopes are ${TOKEN_SCOPES.join(', ')}.`,
      {
        field: 'scopes',
      },
    );
  if (given.length === 0)
    throw new BadUserInput(`A token needs at least one scope; the scopes are ${TOKEN_SCOPES.join(', ')}.`, {
      field: 'scopes',
    });
  return given.filter(isScope);
}

function livesFor(expires: string): number {
  const parsed = parseDuration(expires, EXPIRES);
  if ('problem' in parsed)
    throw new BadUserInput(`'expires' ${parsed.problem}; leave it out for a token without an end.`, {
      field: 'expires',
    });
  return parsed.value;
}

function expiresAtOf({ expiresAt }: TokenRow): string | null {
  return expiresAt === NEVER ? null : new Date(expiresAt).toISOString();
}

function storedScopes({ scopes }: TokenRow): TokenScope[] {
  return scopes.split(',').filter(isScope);
}

function isScope(text: string): text is TokenScope {
  return (TOKEN_SCOPES as readonly unknown[]).includes(text);
}
