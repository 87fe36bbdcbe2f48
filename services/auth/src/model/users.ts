/**
 * Users: who an identity provider says somebody is, and what we call them. A user is an account at one provider; the same
 * person at another provider is another user, for nothing there proves that both are one.
 */
import type { AuthUser } from '@penstock/identity';
import { newId, type Collection, type DocumentStore } from '@penstock/store';
import { identitiesSpec, suspendedUsersSpec, usersSpec, type UserRow } from './collections.ts';
import { LoginNotAllowed } from './errors.ts';
import { vouchedNames, type KnownAccount, type NamedAccounts } from './named-accounts.ts';
import type { Profile, ProviderKind } from './profile.ts';
import { hashOf } from './secrets.ts';

export interface UsersOptions {
  /** `SERVICE_ADMINS` */
  readonly admins: NamedAccounts;
  /** `SERVICE_ALLOWED_LOGINS`; null: everybody may log in. */
  readonly allowed: NamedAccounts | null;
  readonly defaultTier: string;
  /** The embedded provider, where everybody may be anybody: there the login is all that somebody is known by. Default false. */
  readonly loginsAreNames?: boolean | undefined;
  readonly now: () => number;
}

const TEXT_LENGTH_MAX = 300;
/** Accounts that have had one name after each other. */
const NAMESAKES_MAX = 100;
/** Deleted at a time. */
const IDENTITIES_MAX = 100;

export class Users {
  readonly #identities: Collection<typeof identitiesSpec>;
  readonly #users: Collection<typeof usersSpec>;
  readonly #suspended: Collection<typeof suspendedUsersSpec>;
  readonly #options: UsersOptions;

  constructor(store: DocumentStore, options: UsersOptions) {
    this.#identities = store.collection(identitiesSpec);
    this.#users = store.collection(usersSpec);
    this.#suspended = store.collection(suspendedUsersSpec);
    this.#options = options;
  }

  /**
   * The user of this account, made at its first login; what the provider says of it now is kept. Accounts of different
   * providers are different users. Throws `LoginNotAllowed`.
   */
  async signedIn(
    provider: { readonly name: string; readonly host: string; readonly kind: ProviderKind },
    profile: Profile,
  ): Promise<UserRow> {
    const { allowed } = this.#options;
    const admittedBy = allowed === null ? '' : allowed.entryOf({ ...profile, kind: provider.kind });
    if (admittedBy === undefined) throw new LoginNotAllowed(`'${profile.login}' may not log in here`);
    const now = this.#options.now();
    const id = await this.#idOf(`${provider.name} ${profile.subject}`, now);
    if (await this.isSuspended(id)) throw new LoginNotAllowed(`'${profile.login}' is suspended here`);
    const known = await this.#users.get(id);
    const login = cut(profile.login);
    const row: UserRow = {
      id,
      email: profile.email === '' ? `${login}@users.noreply.${provider.host}` : cut(profile.email),
      emailVerified: profile.email !== '' && profile.emailVerified,
      name: cut(profile.name),
      login,
      loginKey: '',
      providerKind: provider.kind,
      subject: cut(profile.subject),
      admittedBy,
      avatarUrl: cut(profile.avatarUrl),
      tier: known?.tier ?? this.#options.defaultTier,
      createdAt: known?.createdAt ?? now,
      updatedAt: Math.max(now, (known?.updatedAt ?? 0) + 1),
      revision: 0,
    };
    // A login at the same moment wrote the same account; what it said is as good.
    const named: UserRow = { ...row, loginKey: this.accessNamesOf(row)[0] ?? '' };
    await this.#users.replaceNewer([named]);
    // Deleted while it was being logged in: nothing of it is to stay.
    if (await this.isDeleted(id)) {
      await this.#users.delete(id);
      throw new LoginNotAllowed(`'${profile.login}' has just been deleted here`);
    }
    return named;
  }

  /** With its accounts at providers; answers how many. Who logs in with one of them later is somebody new. */
  async delete(id: string): Promise<{ readonly identities: number }> {
    let identities = 0;
    for (let gone = IDENTITIES_MAX; gone === IDENTITIES_MAX; identities += gone)
      gone = await this.#identities.deleteWhere({ where: { userId: id }, limit: IDENTITIES_MAX });
    await this.#users.delete(id);
    return { identities };
  }

  async get(id: string): Promise<UserRow | null> {
    return isId(id) ? await this.#users.get(id) : null;
  }

  /** Who has this name now, by the last logins; in lower case. Null: nobody, or nobody who has logged in since names are kept. */
  async named(login: string): Promise<UserRow | null> {
    const rows = login === '' ? [] : await this.#users.list({ where: { loginKey: login }, limit: NAMESAKES_MAX });
    return rows.toSorted((a, b) => b.updatedAt - a.updatedAt)[0] ?? null;
  }

  isAdmin(user: UserRow): boolean {
    return this.#options.admins.entryOf(accountOf(user)) !== undefined;
  }

  /** Whether the user may still be logged in: a name that was taken off the list lets nobody in any more. */
  async isAdmitted(user: UserRow): Promise<boolean> {
    const { allowed } = this.#options;
    const isNamed =
      allowed === null || allowed.hasEntry(user.admittedBy) || allowed.entryOf(accountOf(user)) !== undefined;
    return isNamed && !(await this.isSuspended(user.id));
  }

  async isSuspended(id: string): Promise<boolean> {
    return (await this.#suspended.get(id)) !== null;
  }

  /** Or is being deleted. */
  async isDeleted(id: string): Promise<boolean> {
    return ((await this.#suspended.get(id))?.deletedAt ?? 0) !== 0;
  }

  /** What its provider vouches for, and by what it is shown: the login where that is one account's alone. */
  namesOf(user: UserRow): { readonly names: readonly string[]; readonly by: string } {
    const names = vouchedNames(accountOf(user));
    return { names, by: user.providerKind === 'oidc' ? user.email : user.login };
  }

  /** By what others let the user into their repositories, and have it approve; in lower case. */
  accessNamesOf(user: UserRow): readonly string[] {
    const { names } = this.namesOf(user);
    return this.#options.loginsAreNames === true ? [user.login.toLowerCase(), ...names] : names;
  }

  shown(user: UserRow): AuthUser {
    const { id, email, name, login, avatarUrl, tier, createdAt } = user;
    return {
      id,
      email,
      name,
      login,
      avatarUrl,
      tier,
      isAdmin: this.isAdmin(user),
      createdAt: new Date(createdAt).toISOString(),
    };
  }

  /** Where two first logins come at the same time one inserts, and both take its id. */
  async #idOf(account: string, now: number): Promise<string> {
    const id = hashOf(account);
    const known = await this.#identities.get(id);
    if (known !== null) return known.userId;
    const userId = newId(now);
    if ((await this.#identities.insert({ id, userId, createdAt: now })) === 'inserted') return userId;
    return (await this.#identities.get(id))?.userId ?? userId;
  }
}

/** Memberships are known at a login only. A user from before `providerKind` was kept is taken for one of an issuer, which trusts less. */
function accountOf({ providerKind, subject, login, email, emailVerified }: UserRow): KnownAccount {
  const kind = providerKind === 'github' || providerKind === 'gitlab' ? providerKind : 'oidc';
  return { kind, subject, login, email, emailVerified, organizations: [] };
}

/** Ids of ours; anything else is of nobody, and not worth a question to the store. */
export function isId(text: unknown): text is string {
  return typeof text === 'string' && /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/u.test(text);
}

function cut(text: string): string {
  return text.slice(0, TEXT_LENGTH_MAX).toWellFormed();
}
