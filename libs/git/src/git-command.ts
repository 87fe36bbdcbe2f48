/**
 * One git process, with an environment made for it: nothing of this process's own, no configuration of the machine or of a
 * user, no prompt, no hook, no helper program. It runs in a process group of its own, which is killed whole at the deadline,
 * when its caller no longer wants it, or when the folder it writes to has outgrown its bound.
 */
import { existsSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { execa } from 'execa';
import { startedWith, type Credentials } from './credentials.ts';
import { GitCommandFailed, GitError } from './errors.ts';
import { folderBytes } from './folder-bytes.ts';

/** A folder that a process writes to, and the bytes that it may hold. */
interface Bound {
  readonly folder: string;
  readonly bytesMax: number;
}

export interface GitCommand {
  /** The command and its arguments, for git or for the program in `file`. */
  readonly args: readonly string[];
  /** Default `git`. */
  readonly file?: string | undefined;
  /** Before the command. */
  readonly options?: readonly string[] | undefined;
  readonly env?: Readonly<Record<string, string>> | undefined;
  readonly cwd: string;
  readonly timeoutMs: number;
  readonly signal?: AbortSignal | undefined;
  /** Beyond it the process is ended and what came before is the answer. Default 1 MiB. */
  readonly stdoutBytesMax?: number | undefined;
  readonly bound?: Bound | undefined;
  /** Of what it reaches: given to git alone, and kept out of errors. */
  readonly credentials?: Credentials | undefined;
}

const STDOUT_BYTES_MAX = 1024 * 1024;
/** The last lines say what went wrong. */
const STDERR_CHARS_MAX = 8 * 1024;
/** A fast disk takes some 100 MB in this time: that far a repository may get beyond its bound. */
const LOOK_EACH_MS = 100;

/**
 * Settings that hold for every command, in the environment, so that they reach those that git itself starts. Checks of
 * what arrives come with `transfer.fsckObjects`; the three that are let pass are harmless faults of old tools, in the
 * history of many a repository.
 */
const SAFE_SETTINGS = [
  ['core.hooksPath', '/dev/null'],
  ['core.attributesFile', '/dev/null'],
  ['core.excludesFile', '/dev/null'],
  ['core.fsmonitor', 'false'],
  ['core.askPass', ''],
  ['core.symlinks', 'true'],
  ['core.protectHFS', 'true'],
  ['core.protectNTFS', 'true'],
  ['core.bigFileThreshold', '16m'],
  ['submodule.recurse', 'false'],
  ['fetch.recurseSubmodules', 'false'],
  ['transfer.fsckObjects', 'true'],
  ['fetch.fsck.zeroPaddedFilemode', 'ignore'],
  ['fetch.fsck.missingSpaceBeforeDate', 'ignore'],
  ['fetch.fsck.badTimezone', 'ignore'],
  // Always a pack: its size is one file's, and its objects are found without a look at thousands of files.
  ['fetch.unpackLimit', '1'],
  ['gc.auto', '0'],
  ['maintenance.auto', 'false'],
  ['pack.threads', '2'],
] as const;

const SETTINGS_IN_ENVIRONMENT = Object.fromEntries([
  ['GIT_CONFIG_COUNT', String(SAFE_SETTINGS.length)],
  ...SAFE_SETTINGS.flatMap(([key, value], index) => [
    [`GIT_CONFIG_KEY_${index}`, key],
    [`GIT_CONFIG_VALUE_${index}`, value],
  ]),
]) as Record<string, string>;

/** Resolves with the output. @throws GitCommandFailed, GitError `timeout`, `too_large`, `git_unusable`, the signal's reason */
export async function runGit(command: GitCommand): Promise<Buffer> {
  command.signal?.throwIfAborted();
  const { file = 'git', args, options = [], timeoutMs, signal, credentials, bound } = command;
  const all = [...(credentials?.options ?? []), ...options, ...args];
  const started = startedWith(credentials, file, all);
  const child = execa(started.file, started.args, {
    cwd: command.cwd,
    env: { ...cleanEnvironment(command.cwd), ...credentials?.env, ...command.env },
    extendEnv: false,
    detached: true,
    stdio: [started.input === undefined ? 'ignore' : 'pipe', 'pipe', 'pipe', ...started.descriptors],
    buffer: false,
    reject: false,
    encoding: 'buffer',
  });
  started.release();
  if (started.input !== undefined) {
    // It may have ended without having read it; its exit code says why.
    child.stdin?.on('error', () => {});
    child.stdin?.end(started.input);
  }
  const ended: { why: GitError | 'aborted' | 'enough' | null } = { why: null };
  const end = (why: NonNullable<(typeof ended)['why']>): void => {
    ended.why ??= why;
    killGroup(child.pid);
  };
  const output: Buffer[] = [];
  let outputBytes = 0;
  const stdoutBytesMax = command.stdoutBytesMax ?? STDOUT_BYTES_MAX;
  child.stdout.on('data', (bytes: Buffer) => {
    output.push(bytes.subarray(0, Math.max(0, stdoutBytesMax - outputBytes)));
    outputBytes += bytes.length;
    if (outputBytes > stdoutBytesMax) end('enough');
  });
  let stderr = '';
  child.stderr.on('data', (bytes: Buffer) => {
    stderr = (stderr + bytes.toString('latin1')).slice(-STDERR_CHARS_MAX);
  });
  const timer = setTimeout(
    () => end(new GitError('timeout', `the repository was not read within ${Math.round(timeoutMs / 1000)} s`)),
    timeoutMs,
  );
  const onAbort = (): void => end('aborted');
  signal?.addEventListener('abort', onAbort, { once: true });
  const over = new AbortController();
  if (bound !== undefined) void watchBound(bound, over.signal, () => end(outgrown(bound)));
  try {
    const result = await child;
    if (ended.why === 'aborted') throw signal?.reason;
    if (ended.why instanceof GitError) throw ended.why;
    if (ended.why === 'enough' || result.exitCode === 0) {
      // What came between two looks.
      if (bound !== undefined && (await folderBytes(bound.folder)) > bound.bytesMax) throw outgrown(bound);
      return Buffer.concat(output);
    }
    // The same code is given for a folder that has gone.
    if (result.exitCode === undefined && result.code === 'ENOENT' && existsSync(command.cwd))
      throw new GitError('git_unusable', 'git is not installed where the service runs', { cause: result.cause });
    throw new GitCommandFailed(
      args[0] ?? '',
      result.exitCode ?? null,
      credentials === undefined ? stderr.trim() : credentials.hides(stderr.trim()),
    );
  } finally {
    clearTimeout(timer);
    over.abort();
    started.ended();
    signal?.removeEventListener('abort', onAbort);
  }
}

/** The folder of `cwd` is no repository of its own: git is told which one to use by each command. */
export function cleanEnvironment(cwd: string): Record<string, string> {
  return {
    PATH: process.env['PATH'] ?? '/usr/local/bin:/usr/bin:/bin',
    ...SETTINGS_IN_ENVIRONMENT,
    LC_ALL: 'C',
    LANGUAGE: 'C',
    HOME: '/dev/null',
    XDG_CONFIG_HOME: '/dev/null',
    GIT_CONFIG_NOSYSTEM: '1',
    GIT_CONFIG_GLOBAL: '/dev/null',
    GIT_ATTR_NOSYSTEM: '1',
    GIT_CEILING_DIRECTORIES: cwd,
    GIT_TERMINAL_PROMPT: '0',
    GIT_LITERAL_PATHSPECS: '1',
    GIT_LFS_SKIP_SMUDGE: '1',
    GIT_OPTIONAL_LOCKS: '0',
    GIT_NO_LAZY_FETCH: '1',
    // Of a command that reaches no repository; a connection names its own.
    GIT_ALLOW_PROTOCOL: 'none',
  };
}

async function watchBound({ folder, bytesMax }: Bound, over: AbortSignal, exceeded: () => void): Promise<void> {
  while (!over.aborted) {
    await delay(LOOK_EACH_MS, undefined, { signal: over }).catch(() => {});
    if (over.aborted) return;
    if ((await folderBytes(folder)) > bytesMax) return exceeded();
  }
}

function outgrown({ bytesMax }: Bound): GitError {
  return new GitError('too_large', `the repository is larger than ${describeBytes(bytesMax)}`);
}

function killGroup(pid: number | undefined): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, 'SIGKILL');
  } catch {
    // Nobody is left in it.
  }
}

export function describeBytes(bytes: number): string {
  if (bytes >= 1024 ** 3) return `${Math.round((bytes / 1024 ** 3) * 10) / 10} GiB`;
  return bytes >= 1024 ** 2 ? `${Math.round((bytes / 1024 ** 2) * 10) / 10} MiB` : `${Math.round(bytes / 1024)} KiB`;
}
