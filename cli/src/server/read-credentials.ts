/**
 * The token that a server is shown: from a file that the user names, from SERVICE_API_KEY, from a login (`penstock login`),
 * or, for a server on this machine, the key that `serve` made for itself. It goes into the Authorization header and
 * nowhere else.
 */
import { open, type FileHandle } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { systemReason } from '@penstock/errors';
import { defaultDataFolder } from '@penstock/config/data-folder';
import type { CommandContext, ParsedArguments } from '../command-line/command.ts';
import { FileError, ServerRefused } from '../process/errors.ts';
import { printableText } from '../output/printable-text.ts';
import type { ServerCredentials } from './credentials.ts';
import { readLogin } from './logins.ts';
import type { ServerAddress } from './server-address.ts';
import { sessionOf } from './session.ts';

const TOKEN_BYTES_MAX = 8192;

export async function readCredentials(
  args: ParsedArguments,
  { cwd, env, terminal }: CommandContext,
  server: ServerAddress,
): Promise<ServerCredentials> {
  const credentials = await find(args, cwd, env, server);
  warnOfPlainText(credentials, terminal, server);
  return credentials;
}

/** Of who administers: the key for that stands before all others but a file that is named. */
export async function readAdminCredentials(
  args: ParsedArguments,
  context: CommandContext,
  server: ServerAddress,
): Promise<ServerCredentials> {
  const key = context.env['SERVICE_ADMIN_KEY']?.trim();
  if (key === undefined || key === '' || args.text('token-file') !== undefined)
    return await readCredentials(args, context, server);
  const credentials = { token: checked(key, 'SERVICE_ADMIN_KEY'), source: 'SERVICE_ADMIN_KEY' };
  warnOfPlainText(credentials, context.terminal, server);
  return credentials;
}

/** Reads the login of the user, whatever other token there is: it is for what only a person may do. */
export async function readLoginCredentials(
  { env, terminal }: CommandContext,
  server: ServerAddress,
): Promise<ServerCredentials> {
  const login = await readLogin(env, server);
  if (login === undefined)
    throw new ServerRefused(
      `you are not logged in to ${server.base}; do it with: penstock login --server ${server.base}`,
    );
  const credentials = await sessionOf(env, server, login);
  warnOfPlainText(credentials, terminal, server);
  return credentials;
}

function warnOfPlainText(
  credentials: ServerCredentials,
  terminal: CommandContext['terminal'],
  server: ServerAddress,
): void {
  if (credentials.token !== undefined && !server.isEncrypted && !server.isLoopback) {
    terminal.note(`penstock: the token travels unencrypted to ${server.base}; use https where you can.`);
  }
}

async function find(
  args: ParsedArguments,
  cwd: string,
  env: CommandContext['env'],
  server: ServerAddress,
): Promise<ServerCredentials> {
  const file = args.text('token-file');
  if (file !== undefined) {
    const token = await readToken(resolve(cwd, file));
    if (token === undefined) throw new FileError(`there is no file ${printableText(file)} to read the token from`);
    return { token, source: `the file ${file}` };
  }
  const given = env['SERVICE_API_KEY']?.trim();
  if (given !== undefined && given !== '')
    return { token: checked(given, 'SERVICE_API_KEY'), source: 'SERVICE_API_KEY' };
  const login = await readLogin(env, server);
  if (login !== undefined) return await sessionOf(env, server, login);
  // The key is shown to a server on this machine only: another one has no business with it.
  if (!server.isLoopback) return { token: undefined, source: 'none was given' };
  const keyFile = join(
    resolve(cwd, args.text('data-dir') ?? (env['SERVICE_DATA_DIR'] || defaultDataFolder(env))),
    'api-key',
  );
  return { token: await readToken(keyFile), source: keyFile };
}

async function readToken(path: string): Promise<string | undefined> {
  try {
    const file = await open(path, 'r');
    try {
      return checked((await textIn(file, path)).trim(), path);
    } finally {
      await file.close();
    }
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (error instanceof FileError) throw error;
    if (code === 'ENOENT' || code === 'ENOTDIR') return undefined;
    throw new FileError(`cannot read the token from ${printableText(path)}: ${printableText(systemReason(error))}`, {
      cause: error,
    });
  }
}

/** A pipe, such as `<(pass ci)`, gives it in as many pieces as it was written in. */
export async function textIn(file: Pick<FileHandle, 'read'>, path: string): Promise<string> {
  const buffer = Buffer.alloc(TOKEN_BYTES_MAX + 1);
  let length = 0;
  while (length < buffer.length) {
    const { bytesRead } = await file.read(buffer, length, buffer.length - length);
    if (bytesRead === 0) return buffer.toString('utf8', 0, length);
    length += bytesRead;
  }
  throw new FileError(`${printableText(path)} holds no token: it has more than ${TOKEN_BYTES_MAX} bytes`);
}

/** A header takes visible ASCII only; the token itself is in no message. */
function checked(token: string, source: string): string {
  if (token === '') throw new FileError(`${printableText(source)} holds no token: it is empty`);
  if (!/^[\x21-\x7e]+$/.test(token))
    throw new FileError(`${printableText(source)} holds no token: a token is one line of visible characters`);
  return token;
}
