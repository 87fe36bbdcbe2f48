/**
 * Credentials and how git gets at them: by a helper that reads a file itself, so that none stands in an argument, in the
 * environment or in a configuration.
 *
 * The machine's are in a file. One that can be executed is asked as a git credential helper; any other is in the form of
 * `git credential-store`. What a repository has of its own comes as a value, and is given to one process of git at a time: a
 * password by a file in memory that has no name any more, a key by an agent that ends with that process (P31).
 *
 * CREDENTIALS-1. With one of its own a repository is never read by anything of the machine's: no file, no key, no agent.
 * CREDENTIALS-2. It is offered to the host, the port and the transport of its repository's address, and to no other.
 */
import { randomUUID } from 'node:crypto';
import {
  accessSync,
  closeSync,
  constants,
  existsSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
  statSync,
  writeSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { GitError } from './errors.ts';
import type { CloneAddress } from './policy.ts';

/** What opens one repository, in place of what this machine has. */
export type CloneCredential =
  | { readonly user: string; readonly password: string }
  /** A private key, as ssh keeps it. */
  | { readonly key: string };

/** Where the helper finds the file: an address, not a secret. */
const FILE_VARIABLE = 'PENSTOCK_GIT_CREDENTIALS';
/** The descriptor by which git, and so its helper, has a file without a name. */
const DESCRIPTOR = 3;
const NAMELESS_FILE = `/proc/self/fd/${DESCRIPTOR}`;
const MEMORY = '/dev/shm';
/**
 * The key comes by the standard input, so that it is in no file; what follows is git's command line. By itself the agent looks each ten
 * seconds whether who has started it is there: whoever had the same user could ask it until then, if its socket had a name still.
 */
const WITH_AGENT = ['sh', '-c', 'ssh-add -q - && "$0" "$@"; ended=$?; kill "$SSH_AGENT_PID"; exit "$ended"'] as const;
/** Asked to `get` only: a store that git may write to would collect what servers accept. */
const FROM_STORE = `!f() { test "$1" = get || exit 0; exec git credential-store --file="$${FILE_VARIABLE}" get; }; f`;
const STORED = ['-c', `credential.helper=${FROM_STORE}`];
const FROM_PROGRAM = `!f() { test "$1" = get || exit 0; exec "$${FILE_VARIABLE}" get; }; f`;

export interface Credentials {
  /** Before git's command. */
  readonly options: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** What git may say none of. */
  readonly hides: (text: string) => string;
  /** Of a repository of its own, in the form of `git credential-store`. */
  readonly line?: string | undefined;
  /** Of a repository of its own. */
  readonly key?: string | undefined;
}

/** For a repository's address: what it has of its own, else the machine's file, which is for http and https. @throws GitError `denied` */
export function credentialsFor(
  address: CloneAddress,
  own: CloneCredential | undefined,
  file: string | undefined,
): Credentials {
  // Nothing that a configuration may have named before.
  const none = ['-c', 'credential.helper='];
  const isWeb = address.transport === 'http' || address.transport === 'https';
  if (own !== undefined)
    return { ...ownCredentials(address, own, isWeb), options: [...none, ...(isWeb ? STORED : [])] };
  const hides = (text: string): string => withoutCredentials(text, file === undefined ? [] : secretsIn(file));
  if (file === undefined || !isWeb) return { options: none, env: {}, hides };
  return {
    options: [...none, '-c', `credential.helper=${isProgram(file) ? FROM_PROGRAM : FROM_STORE}`],
    env: { [FILE_VARIABLE]: file },
    hides,
  };
}

/** Keeps CREDENTIALS-1, CREDENTIALS-2. */
function ownCredentials(
  { transport, url }: CloneAddress,
  own: CloneCredential,
  isWeb: boolean,
): Omit<Credentials, 'options'> {
  if (transport === 'file') throw new GitError('denied', 'a folder of this machine is read without a credential');
  if ('key' in own) {
    if (isWeb) throw new GitError('denied', `a key opens an address of ssh, and not one of ${transport}: give a token`);
    return { env: {}, hides: (text) => withoutCredentials(text, [own.key]), key: own.key };
  }
  if (!isWeb) throw new GitError('denied', 'a password or a token opens no address of ssh: give a private key');
  const [user, password] = [encodeURIComponent(own.user), encodeURIComponent(own.password)];
  return {
    env: { [FILE_VARIABLE]: NAMELESS_FILE },
    hides: (text) => withoutCredentials(text, [own.password, password]),
    line: `${transport}://${user}:${password}@${authorityOf(url)}\n`,
  };
}

/** Of an address that was checked: it has no user, and may have a port. */
function authorityOf(url: string): string {
  return url.replace(/^[a-z]+:\/\//u, '').replace(/\/.*$/u, '');
}

/**
 * How a process of git is started that has these. `release`, once it has started: this process keeps nothing. `ended`, once it is over, however: nobody
 * reaches what it had.
 */
export function startedWith(
  credentials: Credentials | undefined,
  file: string,
  args: readonly string[],
): {
  readonly file: string;
  readonly args: readonly string[];
  readonly input: string | undefined;
  /** Whatever their numbers: the type has the first of them only. */
  readonly descriptors: readonly 3[];
  release(): void;
  ended(): void;
} {
  const plain = { file, args, input: undefined, descriptors: [], release: () => {}, ended: () => {} };
  if (credentials?.key !== undefined) {
    const folder = mkdtempSync(join(secretPlace(), '.penstock-agent-'));
    return {
      ...plain,
      file: 'ssh-agent',
      // Named: by itself it would be below HOME (OpenSSH 10.1), which git has none of, or in the folder of temporary files.
      args: ['-a', join(folder, 'socket'), ...WITH_AGENT, file, ...args],
      input: credentials.key,
      ended: () => rmSync(folder, { recursive: true, force: true }),
    };
  }
  if (credentials?.line === undefined) return plain;
  const descriptor = namelessFile(credentials.line);
  return { ...plain, descriptors: [descriptor as 3], release: () => closeSync(descriptor) };
}

function secretPlace(): string {
  return existsSync(MEMORY) ? MEMORY : tmpdir();
}

/** A file that has lost its name as soon as it holds the text: it is there for who has inherited it, and goes with the last of them. */
function namelessFile(text: string): number {
  const path = join(secretPlace(), `.penstock-git-${randomUUID()}`);
  const written = openSync(path, 'wx', 0o600);
  try {
    writeSync(written, text);
    return openSync(path, 'r');
  } finally {
    closeSync(written);
    rmSync(path, { force: true });
  }
}

/** What an operator should know about the file before the first clone fails; null: nothing. */
export function problemWithFile(file: string): string | null {
  try {
    accessSync(file, constants.R_OK);
    return (statSync(file).mode & 0o077) === 0 || isProgram(file)
      ? null
      : 'the file with the git credentials can be read by others';
  } catch {
    return 'the file with the git credentials cannot be read';
  }
}

/** Without these, and without what stands before an `@`. */
function withoutCredentials(text: string, secrets: readonly string[]): string {
  let clean = text.replaceAll(/:\/\/[^/@\s]+@/gu, '://');
  for (const secret of secrets) clean = clean.replaceAll(secret, '***');
  return clean;
}

/** The passwords in a file, in plain and in encoded form. */
function secretsIn(file: string): string[] {
  if (isProgram(file)) return [];
  try {
    return readFileSync(file, 'utf8')
      .split('\n')
      .flatMap((line) => {
        const encoded = /^[a-z]+:\/\/[^:@/]*:([^@/]+)@/u.exec(line.trim())?.[1];
        if (encoded === undefined) return [];
        return [encoded, decoded(encoded)];
      });
  } catch {
    return [];
  }
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function isProgram(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    // Root may execute what nobody may.
    return (statSync(file).mode & 0o111) !== 0;
  } catch {
    return false;
  }
}
