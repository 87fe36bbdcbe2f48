/** A `mongodb://` address taken apart without keeping what is secret in it: the label is all that errors and logs ever show. */
import { StoreUsageError } from '../errors.ts';

export interface MongoAddress {
  /** Hosts and database; no user, no password, no options. */
  readonly label: string;
  readonly database: string;
}

const DATABASE_DEFAULT = 'penstock';
const UNREADABLE = 'mongodb://(unreadable address)';
const HOST = /^(?:\[[\da-fA-F:.%]+\]|[\w.%-]+)(?::\d{1,5})?$/;
/** What MongoDB itself allows on every platform. */
const DATABASE_NAME = /^[^\s/\\."$*<>:|?\0]{1,63}$/;

/** Throws StoreUsageError, which quotes nothing of an address that cannot be read. */
export function readAddress(url: string, database?: string): MongoAddress {
  const scheme = /^mongodb(?:\+srv)?:\/\//.exec(url)?.[0];
  if (scheme === undefined)
    throw new StoreUsageError(
      UNREADABLE,
      "the address of the store begins with neither 'mongodb://' nor 'mongodb+srv://'",
    );
  // A password that was not escaped may hold any character, '@', '/' and '?' too: whatever stands before the last '@' is secret.
  const afterUser = url.slice(Math.max(scheme.length, url.lastIndexOf('@') + 1));
  const parts = /^([^/?]+)(?:\/([^?]*))?(?:\?.*)?$/.exec(afterUser);
  const hosts = parts?.[1];
  // A port that is no number is a password whose '@' was forgotten.
  if (hosts === undefined || !hosts.split(',').every((host) => HOST.test(host)))
    throw new StoreUsageError(
      UNREADABLE,
      'the address of the store cannot be read; the form is mongodb://user:password@host:port/database?options, with user and password percent-encoded',
    );
  const name = database ?? (decoded(parts?.[2]) || DATABASE_DEFAULT);
  const label = `${scheme}${hosts}/${name}`;
  if (!DATABASE_NAME.test(name))
    throw new StoreUsageError(`${scheme}${hosts}`, `'${name}' cannot be the name of a database`);
  return { label, database: name };
}

function decoded(text: string | undefined): string | undefined {
  try {
    return text === undefined ? undefined : decodeURIComponent(text);
  } catch {
    return text;
  }
}
