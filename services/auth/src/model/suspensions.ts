/**
 * Who is shut out by an administrator. It owns the documents that say so, and tells the gateways.
 *
 *  SUSPENSION-1 The document stands before the gateways are told, and goes before they are told that it is over: whatever they ask
 *     meanwhile is answered by it.
 *  SUSPENSION-2 What the gateways are told outlives every access token that was given out before, and every answer of ours that they
 *     keep; from then on nothing is given out or confirmed for as long as the document stands.
 *  SUSPENSION-3 The document of a user who is deleted stands for good: what was under way under the id meanwhile is worth nothing.
 */
import { BadUserInput, Conflict, NotFound } from '@penstock/errors';
import { revocationKeys, type SuspendedUser } from '@penstock/identity';
import type { Collection, DocumentStore } from '@penstock/store';
import { suspendedUsersSpec, type SuspendedUserRow, type UserRow } from './collections.ts';
import type { Revocations } from './revocations.ts';
import { isId, type Users } from './users.ts';

export interface SuspensionsOptions {
  readonly users: Users;
  readonly revocations: Revocations;
  readonly now: () => number;
}

const LISTED_MAX = 1_000;

export class Suspensions {
  readonly #suspended: Collection<typeof suspendedUsersSpec>;
  readonly #options: SuspensionsOptions;

  constructor(store: DocumentStore, options: SuspensionsOptions) {
    this.#suspended = store.collection(suspendedUsersSpec);
    this.#options = options;
  }

  /** `by` as the audit log names people. Throws `NotFound`, `BadUserInput` for oneself, `Unavailable`; it is safe to repeat. */
  async suspend(login: string, by: string): Promise<SuspendedUser> {
    const { id, login: shownLogin } = await this.#userOf(login);
    if (by === `user/${id}`) throw new BadUserInput('That is you: another administrator can suspend you.');
    const suspendedAt = this.#options.now();
    const row: SuspendedUserRow = { id, login: shownLogin, suspendedBy: by, suspendedAt, deletedAt: 0, step: 0 };
    await this.#suspended.insert(row);
    await this.#options.revocations.revoke(revocationKeys.suspended(id), this.#options.now());
    const kept = (await this.#suspended.get(id)) ?? row;
    if (kept.deletedAt !== 0) throw beingDeleted();
    return shown(kept);
  }

  /** False: the user was not suspended. Throws as `suspend`. */
  async lift(login: string): Promise<{ readonly id: string; readonly lifted: boolean }> {
    const { id } = await this.#userOf(login);
    const row = await this.#suspended.get(id);
    if (row !== null && row.deletedAt !== 0) throw beingDeleted();
    // What the store says of it may be no, though it was this that has deleted it: the audit log is to have it all the same.
    await this.#suspended.delete(id);
    await this.#options.revocations.revoke(revocationKeys.suspended(id), 0);
    return { id, lifted: row !== null };
  }

  /** SUSPENSION-3: from here on there is no way back. Throws as `suspend`; a user who is gone is found by the id. */
  async shutForGood(login: string, by: string): Promise<{ readonly id: string; readonly login: string }> {
    const user = await this.#userToDelete(login);
    if (by === `user/${user.id}`) throw new BadUserInput('That is you: another administrator can delete you.');
    const deletedAt = Math.max(1, this.#options.now());
    await this.#suspended.replaceNewer([
      { id: user.id, login: '', suspendedBy: by, suspendedAt: 0, deletedAt, step: 0 },
    ]);
    await this.#options.revocations.revoke(revocationKeys.suspended(user.id), this.#options.now());
    return user;
  }

  async list(): Promise<readonly SuspendedUser[]> {
    const rows = await this.#suspended.list({
      where: { suspendedAt: { gt: 0 } },
      orderBy: { field: 'suspendedAt', direction: 'desc' },
      limit: LISTED_MAX,
    });
    return rows.map(shown);
  }

  async #userToDelete(login: string): Promise<{ readonly id: string; readonly login: string }> {
    const name = login.trim();
    const gone = isId(name) ? await this.#suspended.get(name) : null;
    return gone !== null && gone.deletedAt !== 0 ? gone : await this.#userOf(name);
  }

  async #userOf(login: string): Promise<UserRow> {
    const name = login.trim();
    const { users } = this.#options;
    const user = (await users.get(name)) ?? (await users.named(name.toLowerCase()));
    if (user === null) throw new NotFound(`Nobody called '${name.slice(0, 200).toWellFormed()}' has logged in here.`);
    return user;
  }
}

function beingDeleted(): Conflict {
  return new Conflict('This user is being deleted: do that again, if it was cut off.');
}

function shown({ id, login, suspendedBy, suspendedAt }: SuspendedUserRow): SuspendedUser {
  return { id, login, suspendedBy, suspendedAt: new Date(suspendedAt).toISOString() };
}
