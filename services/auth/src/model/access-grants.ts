/**
 * Who else may work on a repository that a user has connected.
 *
 *  ACCESS-1 A grant names somebody by what the identity provider vouches for, and is bound to the user who has that name then, or who logs
 *     in with it first: a name that changes hands later takes nothing along.
 *  ACCESS-2 Nobody learns by a grant whether there is a user of that name.
 *  ACCESS-3 Every gateway is told of a change before it is answered, where it concerns somebody who could be here.
 */
import { BadUserInput, Conflict } from '@penstock/errors';
import {
  ACCESS_ROLES,
  revocationKeys,
  type AccessEntry,
  type AccessRole,
  type Grant,
  type OwnedRepository,
} from '@penstock/identity';
import { insertWithin, type Collection, type DocumentOf, type DocumentStore, type Selection } from '@penstock/store';
import { accessGrantsSpec, type UserRow } from './collections.ts';
import type { Revocations } from './revocations.ts';
import { hashOf } from './secrets.ts';
import type { Users } from './users.ts';

export interface AccessGrantsOptions {
  readonly users: Users;
  readonly revocations: Revocations;
  readonly now: () => number;
}

/** Of one repository. */
const PER_REPOSITORY_MAX = 200;
/** Of one name of a person, whoever gives it: a login, an address. */
const PER_NAME_MAX = 45;
/** Of one person: each is a question more to the store when runs are listed, which takes no more than a hundred at a time. */
const PER_PERSON_MAX = 2 * PER_NAME_MAX;
/** Of a person who has had many names. */
const READ_MAX = 1_000;
/** Others that change the same access at the same moment are few. */
const TRIES_MAX = 5;
const LOGIN_LENGTH_MAX = 300;
const PLAIN = /^[!-~]+$/u;

type GrantRow = DocumentOf<typeof accessGrantsSpec>;

export class AccessGrants {
  readonly #rows: Collection<typeof accessGrantsSpec>;
  readonly #options: AccessGrantsOptions;

  constructor(store: DocumentStore, options: AccessGrantsOptions) {
    this.#rows = store.collection(accessGrantsSpec);
    this.#options = options;
  }

  /** Throws `BadUserInput` and `Conflict`. */
  async grant(
    of: OwnedRepository,
    { login: given, role, by }: { readonly login: string; readonly role: string; readonly by: string },
  ): Promise<AccessEntry> {
    const asked = { login: loginOf(given), role: roleOf(role), by };
    // Somebody may log in with the name meanwhile, or others give it too: what was asked for last is to stand.
    for (let tries = 1; tries <= TRIES_MAX; tries += 1) {
      const row = await this.#granted(of, asked);
      if (row === undefined) continue;
      await this.#told(row.userId);
      return shown(row);
    }
    throw new Conflict(`The access of '${asked.login}' is being changed by others at the same time: try again.`);
  }

  /** Undefined: another change came first. */
  async #granted(
    of: OwnedRepository,
    { login, role, by }: Pick<GrantRow, 'login' | 'role'> & { readonly by: string },
  ): Promise<GrantRow | undefined> {
    const { users, now } = this.#options;
    const id = idOf(of, login);
    const known = await this.#rows.get(id);
    const user = known !== null && known.userId !== '' ? null : await users.named(login);
    const userId = known !== null && known.userId !== '' ? known.userId : (user?.id ?? '');
    if (userId !== '' && of.tenant === `user/${userId}`)
      throw new BadUserInput('The repository is yours: nobody has to let you in.', { field: 'login' });
    const at = now();
    const row: GrantRow = {
      id,
      ...of,
      repositoryKey: keyOf(of),
      login,
      userId,
      role,
      grantedBy: by,
      grantedAt: at,
      firstAt: known === null ? at : firstAtOf(known),
      revision: (known?.revision ?? 0) + 1,
      step: 0,
    };
    const isKept = known === null ? await this.#insert(row) : (await this.#rows.replaceNewer([row])).stale.length === 0;
    return isKept ? row : undefined;
  }

  /** False: somebody else gives it at this moment. Throws `Conflict` where the repository or the name has as many as it may have. */
  async #insert(row: GrantRow): Promise<boolean> {
    const { tenant, repositoryKey, login } = row;
    const perRepository = {
      where: { tenant, repositoryKey },
      max: PER_REPOSITORY_MAX,
      refusal: () =>
        new Conflict(`A repository has at most ${PER_REPOSITORY_MAX} people: take somebody's access away first.`),
    };
    const perName = {
      where: { login },
      max: PER_NAME_MAX,
      refusal: () =>
        new Conflict(
          `'${login}' has access to ${PER_NAME_MAX} repositories of others already: one of them has to be given up first (penstock access leave).`,
        ),
    };
    return (await insertWithin(this.#rows, row, perRepository, perName)) === 'inserted';
  }

  /** False: there was none. */
  async revoke(of: OwnedRepository, login: string): Promise<boolean> {
    const row = await this.#rows.get(idOf(of, login.trim().toLowerCase()));
    if (row === null) return false;
    await this.#end(row);
    return true;
  }

  /** A user gives up what others let it do there; false: there was nothing. */
  async leave(of: OwnedRepository, userId: string): Promise<boolean> {
    const rows = (await this.#of(of)).filter((row) => row.userId === userId);
    for (const row of rows) await this.#end(row);
    return rows.length > 0;
  }

  /** All of a repository that is connected no more; answers how many there were. */
  async end(of: OwnedRepository): Promise<number> {
    const rows = await this.#of(of);
    for (const row of rows) await this.#end(row);
    return rows.length;
  }

  /** Of a user who is being deleted: what others let it do, and what it let others do. Answers how many there were of both. */
  async forget(userId: string): Promise<{ readonly received: number; readonly given: number }> {
    const received = await this.#endAll({ where: { userId } });
    const given = {
      where: { tenant: `user/${userId}` },
      orderBy: { field: 'repositoryKey', direction: 'asc' },
    } as const;
    return { received, given: await this.#endAll(given) };
  }

  async list(of: OwnedRepository): Promise<AccessEntry[]> {
    return (await this.#of(of)).map(shown).toSorted((a, b) => (a.login < b.login ? -1 : 1));
  }

  /** The first that were given, whatever role was given since: whoever gives more takes nothing away of what others gave before. */
  async of(userId: string): Promise<Grant[]> {
    const rows = userId === '' ? [] : await this.#rows.list({ where: { userId }, limit: READ_MAX });
    const first = rows.toSorted((a, b) => firstAtOf(a) - firstAtOf(b)).slice(0, PER_PERSON_MAX);
    return first.flatMap(({ tenant, provider, repository, role }) =>
      isRole(role) ? [{ tenant, provider, repository, role }] : [],
    );
  }

  /** ACCESS-1: what waits for whoever logs in with one of these names. */
  async bind(user: UserRow): Promise<void> {
    let bound = 0;
    for (const login of this.#options.users.accessNamesOf(user)) {
      const rows = await this.#rows.list({ where: { login }, limit: PER_NAME_MAX });
      const waiting = rows.filter(({ userId, tenant }) => userId === '' && tenant !== `user/${user.id}`);
      // What is taken back at this moment stays so.
      for (const row of waiting)
        if (await this.#rows.replaceStanding({ ...row, userId: user.id, revision: row.revision + 1 })) bound += 1;
    }
    if (bound > 0) await this.#told(user.id);
  }

  async #of(of: OwnedRepository): Promise<GrantRow[]> {
    return await this.#rows.list({
      where: { tenant: of.tenant, repositoryKey: keyOf(of) },
      limit: 2 * PER_REPOSITORY_MAX,
    });
  }

  async #endAll(selection: Pick<Selection<typeof accessGrantsSpec>, 'where' | 'orderBy'>): Promise<number> {
    for (let ended = 0; ;) {
      const rows = await this.#rows.list({ ...selection, limit: PER_REPOSITORY_MAX });
      for (const row of rows) await this.#end(row);
      ended += rows.length;
      if (rows.length < PER_REPOSITORY_MAX) return ended;
    }
  }

  /** A store may not know that it was this that has deleted it: what was read, and is not there any more, has ended. */
  async #end({ id, userId }: GrantRow): Promise<void> {
    const deleted = await this.#rows.delete(id, { userId });
    await this.#told(userId);
    // Somebody may have logged in with the name since it was read: whose it is then is told.
    const bound = deleted ? null : await this.#rows.get(id);
    if (bound !== null) await this.#end(bound);
  }

  /** ACCESS-3: after the change is kept, so that whoever asks then is told of it. */
  async #told(userId: string): Promise<void> {
    if (userId !== '') await this.#options.revocations.revoke(revocationKeys.access(userId), this.#options.now());
  }
}

/** Of a row of an earlier release nothing else is known. */
function firstAtOf({ firstAt, grantedAt }: GrantRow): number {
  return firstAt === 0 ? grantedAt : firstAt;
}

function keyOf({ provider, repository }: OwnedRepository): string {
  return `${provider} ${repository.toLowerCase()}`;
}

function idOf(of: OwnedRepository, login: string): string {
  return hashOf(JSON.stringify([of.tenant, keyOf(of), login]));
}

function loginOf(given: string): string {
  const login = given.trim().toLowerCase();
  if (login.length > LOGIN_LENGTH_MAX || !PLAIN.test(login))
    throw new BadUserInput(
      "'login' is the login of somebody at the identity provider, or an email address that it has verified.",
      { field: 'login' },
    );
  return login;
}

function roleOf(role: string): AccessRole {
  if (!isRole(role))
    throw new BadUserInput(
      `'${role.slice(0, 50).toWellFormed()}' is no role; the roles are ${ACCESS_ROLES.join(', ')}.`,
      { field: 'role' },
    );
  return role;
}

function isRole(role: string): role is AccessRole {
  return (ACCESS_ROLES as readonly string[]).includes(role);
}

function shown({ login, role, grantedBy, grantedAt }: GrantRow): AccessEntry {
  return { login, role: role as AccessRole, grantedBy, grantedAt: new Date(grantedAt).toISOString() };
}
