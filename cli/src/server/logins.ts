/**
 * Logins of this user, in the folder for settings: one file a server, so that two servers are never in each other's way.
 * A file is replaced whole, and only its owner reads it.
 */
import { createHash } from 'node:crypto';
import { chmod, readFile, rm } from 'node:fs/promises';
import { homedir } from 'node:os';
import { isAbsolute, join } from 'node:path';
import { systemReason } from '@penstock/errors';
import type { CommandContext } from '../command-line/command.ts';
import { FileError } from '../process/errors.ts';
import { replaceWhole } from '../process/whole-file.ts';
import { printableText } from '../output/printable-text.ts';
import { fieldOf, parseJson } from './json.ts';
import type { ServerAddress } from './server-address.ts';

export interface StoredLogin {
  /** Of the server, to be sure of it: the file's name holds a part only. */
  readonly server: string;
  /** The name at the identity provider. */
  readonly login: string;
  readonly refreshToken: string;
  readonly accessToken: string;
  /** When that came, by this machine's clock, in milliseconds since 1970. */
  readonly receivedAt?: number | undefined;
}

type Environment = CommandContext['env'];

/** Undefined: none. Throws FileError for a file that cannot be read. */
export async function readLogin(env: Environment, server: ServerAddress): Promise<StoredLogin | undefined> {
  const file = fileOf(env, server);
  let text: string;
  try {
    text = await readFile(file, 'utf8');
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT' || code === 'ENOTDIR') return undefined;
    throw new FileError(`cannot read the login from ${printableText(file)}: ${printableText(systemReason(error))}`, {
      cause: error,
    });
  }
  const kept = parseJson(text);
  const [name, refreshToken, accessToken] = ['login', 'refreshToken', 'accessToken'].map((field) =>
    fieldOf(kept, field),
  );
  if (fieldOf(kept, 'server') !== server.base || !isToken(refreshToken) || !isToken(accessToken)) return undefined;
  const receivedAt = fieldOf(kept, 'receivedAt');
  return {
    server: server.base,
    login: typeof name === 'string' ? name : '',
    refreshToken,
    accessToken,
    ...(typeof receivedAt === 'number' ? { receivedAt } : {}),
  };
}

export async function keepLogin(env: Environment, server: ServerAddress, login: StoredLogin): Promise<string> {
  const file = fileOf(env, server);
  const folder = folderOf(env);
  try {
    const { makeFolder } = await import('@penstock/async');
    await makeFolder(folder);
    await chmod(folder, 0o700);
    await replaceWhole(file, `${JSON.stringify(login, null, 2)}\n`, 0o600);
    return file;
  } catch (error) {
    throw new FileError(`cannot keep the login in ${printableText(file)}: ${printableText(systemReason(error))}`, {
      cause: error,
    });
  }
}

export async function forgetLogin(env: Environment, server: ServerAddress): Promise<void> {
  await rm(fileOf(env, server), { force: true });
}

function folderOf(env: Environment): string {
  const given = env['XDG_CONFIG_HOME'] ?? '';
  // The XDG rules: a relative path is to be ignored. In a checkout the tokens would be committed.
  const settings = isAbsolute(given) ? given : join(env['HOME'] || homedir(), '.config');
  return join(settings, 'penstock', 'logins');
}

/** A name that a person recognises, and a hash that no other address has. */
function fileOf(env: Environment, { base }: ServerAddress): string {
  const name = new URL(base).host.replace(/[^a-z0-9.-]/gu, '_').slice(0, 100);
  return join(folderOf(env), `${name}-${createHash('sha256').update(base).digest('hex').slice(0, 12)}.json`);
}

/** A header takes visible ASCII only. */
function isToken(value: unknown): value is string {
  return typeof value === 'string' && /^[\x21-\x7e]{1,8192}$/u.test(value);
}
