/**
 * The credentials file and how git gets at it: by a helper that reads the file itself, so that no credential stands in an
 * argument, in the environment, in a configuration or in this process for longer than it takes to keep it out of a log.
 *
 * A file that can be executed is asked as a git credential helper; any other is in the form of `git credential-store`.
 */
import { accessSync, constants, readFileSync, statSync } from 'node:fs';

/** Where the helper finds the file: an address, not a secret. */
const FILE_VARIABLE = 'PENSTOCK_GIT_CREDENTIALS';
/** Asked to `get` only: a store that git may write to would collect what servers accept. */
const FROM_STORE = `!f() { test "$1" = get || exit 0; exec git credential-store --file="$${FILE_VARIABLE}" get; }; f`;
const FROM_PROGRAM = `!f() { test "$1" = get || exit 0; exec "$${FILE_VARIABLE}" get; }; f`;

export interface Credentials {
  /** Before git's command. */
  readonly options: readonly string[];
  readonly env: Readonly<Record<string, string>>;
}

export function credentialsFrom(file: string | undefined): Credentials {
  // Nothing that a configuration may have named before.
  const none = ['-c', 'credential.helper='];
  if (file === undefined) return { options: none, env: {} };
  return {
    options: [...none, '-c', `credential.helper=${isProgram(file) ? FROM_PROGRAM : FROM_STORE}`],
    env: { [FILE_VARIABLE]: file },
  };
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

/** A text without any user name's password of the file, in plain and in encoded form, and without what stands before an `@`. */
export function withoutCredentials(text: string, file: string | undefined): string {
  let clean = text.replaceAll(/:\/\/[^/@\s]+@/gu, '://');
  for (const secret of file === undefined || isProgram(file) ? [] : secretsOf(file))
    clean = clean.replaceAll(secret, '***');
  return clean;
}

function secretsOf(file: string): string[] {
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
