/**
 * Accounts as the operator names them in `SERVICE_ADMINS` and `SERVICE_ALLOWED_LOGINS`, and which account a name means.
 *
 * ACCOUNTS-1 A name means only what the provider vouches for: an email that it has verified, a login where logins are one
 *     account's alone, the subject of an OpenID Connect issuer, a membership. What an account says of itself names nobody.
 */
import type { ProviderKind } from './profile.ts';

/** What is known of an account when it is compared. */
export interface KnownAccount {
  readonly kind: ProviderKind;
  readonly subject: string;
  readonly login: string;
  readonly email: string;
  readonly emailVerified: boolean;
  readonly organizations: readonly string[];
}

type Form = 'email' | 'login' | 'subject' | 'domain' | 'organization';

interface Name {
  readonly form: Form;
  /** In lower case, but for a subject. */
  readonly value: string;
  /** As the operator wrote it, in lower case but for a subject. */
  readonly entry: string;
}

/** Two characters that only look alike have one lower case (the Kelvin sign and k): such a text names nobody. */
const PLAIN = /^[!-~]+$/u;

export class NamedAccounts {
  readonly #names: readonly Name[];

  /**
   * `forms: 'each'` takes single accounts only, `'all'` also `@domain` and `org:NAME`. Throws a RangeError that names the
   * variable for an entry that can mean nobody.
   */
  constructor(variable: string, entries: readonly string[], forms: 'each' | 'all') {
    this.#names = entries.map((entry) => nameOf(variable, entry, forms));
  }

  /** The entry that means this account, as it can be kept; undefined: none does. */
  entryOf(account: KnownAccount): string | undefined {
    return this.#names.find((name) => means(name, account))?.entry;
  }

  hasEntry(entry: string): boolean {
    return this.#names.some((name) => name.entry === entry);
  }

  /** The organisations or groups that a provider has to be asked about. */
  get organizations(): readonly string[] {
    return this.#names.flatMap(({ form, value }) => (form === 'organization' ? [value] : []));
  }

  /** Entries that mean nobody at this kind of provider. */
  uselessAt(kind: ProviderKind): readonly string[] {
    const useless: readonly Form[] = kind === 'oidc' ? ['login', 'organization'] : ['subject'];
    return this.#names.flatMap(({ form, entry }) => (useless.includes(form) ? [entry] : []));
  }
}

function nameOf(variable: string, given: string, forms: 'each' | 'all'): Name {
  const entry = given.trim();
  const refused = (why: string): RangeError => new RangeError(`${variable} has the entry '${entry}', ${why}`);
  if (!PLAIN.test(entry)) throw refused('which is empty or holds characters that no account is named by');
  const lower = entry.toLowerCase();
  if (lower.startsWith('sub:')) {
    const value = entry.slice('sub:'.length);
    if (value === '') throw refused('which lacks the subject: write sub:<subject>');
    return { form: 'subject', value, entry: `sub:${value}` };
  }
  if (lower.startsWith('org:') || lower.startsWith('@')) {
    if (forms === 'each') throw refused('which means many accounts; name each by email, login or sub:<subject>');
    const [form, value]: [Form, string] = lower.startsWith('@')
      ? ['domain', lower.slice(1)]
      : ['organization', lower.slice('org:'.length)];
    if (value === '' || value.includes('@')) throw refused('which is neither @domain nor org:NAME');
    return { form, value, entry: lower };
  }
  return { form: lower.includes('@') ? 'email' : 'login', value: lower, entry: lower };
}

/** The logins and email addresses that mean this account, in lower case (ACCOUNTS-1). */
export function vouchedNames(account: KnownAccount): string[] {
  const { login, email } = account;
  const forms: readonly Name[] = [
    { form: 'login', value: login.toLowerCase(), entry: login },
    { form: 'email', value: email.toLowerCase(), entry: email },
  ];
  return forms.filter((name) => name.value !== '' && means(name, account)).map(({ value }) => value);
}

/** Keeps ACCOUNTS-1. */
function means({ form, value }: Name, account: KnownAccount): boolean {
  const email = account.emailVerified && PLAIN.test(account.email) ? account.email.toLowerCase() : '';
  switch (form) {
    case 'email':
      return email === value;
    case 'domain':
      return email !== '' && email.slice(email.lastIndexOf('@') + 1) === value;
    case 'login':
      return account.kind !== 'oidc' && PLAIN.test(account.login) && account.login.toLowerCase() === value;
    case 'subject':
      return account.kind === 'oidc' && account.subject === value;
    case 'organization':
      return account.kind !== 'oidc' && account.organizations.includes(value);
  }
}

export interface Named {
  readonly admins: NamedAccounts;
  readonly allowed: NamedAccounts | null;
}

/** Throws a RangeError that names the variable with an entry that can mean nobody. */
export function namedAccounts({
  admins,
  allowedLogins,
}: {
  readonly admins: readonly string[];
  readonly allowedLogins?: readonly string[] | undefined;
}): Named {
  return {
    admins: new NamedAccounts('SERVICE_ADMINS', admins, 'each'),
    allowed: allowedLogins === undefined ? null : new NamedAccounts('SERVICE_ALLOWED_LOGINS', allowedLogins, 'all'),
  };
}
