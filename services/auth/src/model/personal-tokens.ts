/** Personal tokens (`svc_`): made, listed, looked up by their hash, revoked. Their text is shown once and kept nowhere. */
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
import type { Collection, DocumentOf, DocumentStore } from '@penstock/store';
import { personalTokensSpec, tokenUsesSpec } from './collections.ts';
import type { Revocations } from './revocations.ts';
import { newId } from './secrets.ts';
import { isId } from './users.ts';

export interface FoundToken {
  readonly id: string;
  readonly userId: string;
  readonly scopes: readonly TokenScope[];
}

const NAME_LENGTH_MAX = 100;
/** How many one user may have: each is a secret that somebody has to look after. */
const TOKENS_MAX = 100;
const USES_MAX = 1_000;

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

  /** Throws `BadUserInput` on a bad name or scope, `Conflict` over the number that one user may have. */
  async create(userId: string, name: string, scopes: readonly string[]): Promise<CreatedToken> {
    const checkedName = nameOf(name);
    const checkedScopes = scopesOf(scopes);
    const present = await this.#tokens.list({ where: { userId }, limit: TOKENS_MAX });
    if (present.length >= TOKENS_MAX)
      throw new Conflict(`A user has at most ${TOKENS_MAX} tokens: revoke one that is not needed any more.`);
    const token = newPersonalToken();
    const now = this.#now();
    const row: TokenRow = {
      id: newId(now),
      userId,
      hash: personalTokenHash(token),
      name: checkedName,
      scopes: checkedScopes.join(','),
      createdAt: now,
    };
    await this.#tokens.insert(row);
    return { id: row.id, name: row.name, scopes: checkedScopes, createdAt: new Date(now).toISOString(), token };
  }

  /** The oldest first. */
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
        lastUsedAt: used === undefined ? null : new Date(used).toISOString(),
      };
    });
  }

  /** Throws `NotFound`, the same for a token that is not there and for one of another user. */
  async revoke(userId: string, id: string): Promise<void> {
    const row = isId(id) ? await this.#tokens.get(id) : null;
    if (row === null || row.userId !== userId) throw new NotFound('You have no token with this id.');
    await this.#revocations.revoke(revocationKeys.token(id), this.#now());
    await this.#tokens.delete(id);
    await this.#uses.delete(id);
  }

  async byHash(hash: string): Promise<FoundToken | null> {
    const [row] = await this.#tokens.list({ where: { hash }, limit: 1 });
    return row === undefined ? null : { id: row.id, userId: row.userId, scopes: storedScopes(row) };
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
}

function nameOf(name: string): string {
  const trimmed = typeof name === 'string' ? name.trim() : '';
  if (trimmed === '' || trimmed.length > NAME_LENGTH_MAX || !trimmed.isWellFormed()) {
    throw new BadUserInput(
      `A token needs a name of 1 to ${NAME_LENGTH_MAX} characters, by which its owner knows it again.`,
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

function storedScopes({ scopes }: TokenRow): TokenScope[] {
  return scopes.split(',').filter(isScope);
}

function isScope(text: string): text is TokenScope {
  return (TOKEN_SCOPES as readonly unknown[]).includes(text);
}
