/**
 * How the helper of a sandbox is started. Seen from outside: a user namespace that holds nothing but the stages' users, in it a
 * mount namespace of the launcher (`launch.sh`), which shows runs their folders, and with a network a namespace for that and
 * the stack beside it; then bubblewrap, which makes all other namespaces and a root that holds what the machine's programs
 * need, and nothing else.
 */
import { lstatSync, readlinkSync, realpathSync } from 'node:fs';
import { dirname, isAbsolute, join, relative } from 'node:path';
import type { ShellLimits } from '../limits/stage-limits.ts';
import { baseArguments, commandOf, DIE_WITH_OWNER, helperArguments, type Launch } from '../process/launch.ts';
import { HELPER_SHELL, HELPER_TEXT, LAUNCH_TEXT } from '../process/scripts.ts';
import { basesOf, sharedBases, table } from '../process/view.ts';
import { STACK_NETWORK } from '../network/rules.ts';

/** The machine's programs and what they need. Not among them: homes, data, sockets of services (/run), what others have mounted. */
const PROGRAMS = ['/usr', '/bin', '/sbin', '/lib', '/lib32', '/lib64', '/libx32', '/etc', '/opt', '/nix', '/gnu'];
const EMPTY_FOLDERS = ['/home', '/root', '/run', '/mnt', '/media', '/srv', '/var/lib', '/var/cache'];
/** What a helper needs to start stages as others and to end them; its stages have none of it. */
const HELPER_RIGHTS = ['CAP_SETUID', 'CAP_SETGID', 'CAP_SETPCAP', 'CAP_KILL'];
const RESOLVER = '/etc/resolv.conf';

export interface SandboxLayout {
  /** Holds the folders of runs; of it a stage sees its run's. */
  readonly keep: string;
  /** The owner's folders that lie among the machine's programs: they look empty. */
  readonly hidden: readonly string[];
  /** Folders that stages see beside the machine's programs, and cannot write to. */
  readonly paths: readonly string[];
  /** Where the owner is root: the users that stages run as. */
  readonly users?: { readonly first: number; readonly last: number } | undefined;
}

export interface SandboxParts {
  readonly layout: SandboxLayout;
  /** A folder of the owner's to mount in. */
  readonly mountFolder: string;
  /** What stands in the place of /etc/resolv.conf. */
  readonly resolverFile: string;
  readonly filter: Uint8Array;
  readonly limits: ShellLimits;
}

/** `rules`: of the network, as `nft` reads them; null: there is none. */
export function launchSandbox(
  { layout, mountFolder, resolverFile, filter, limits }: SandboxParts,
  rules: string | null,
): Launch {
  const isRoot = process.getuid?.() === 0;
  const bases = basesOf(layout.keep, {
    work: join(mountFolder, 'work'),
    tmp: join(mountFolder, 'tmp'),
    shm: join(mountFolder, 'shm'),
  });
  return {
    isolation: 'sandbox',
    mounts: table([['sandbox', mountFolder, 'tmpfs', 'size=64k,mode=755'], ...sharedBases(bases)]),
    bases,
    idMap: isRoot ? idMapOf(layout.users) : undefined,
    hasStack: rules !== null,
    filter,
    ...commandOf([
      ...DIE_WITH_OWNER,
      ...['unshare', '--user', ...(isRoot ? [] : ['--map-root-user']), '--'],
      ...[HELPER_SHELL, '-c', LAUNCH_TEXT, 'launch', 'outer', isRoot ? 'wait' : ''],
      ...[rules === null ? '' : STACK_NETWORK, HELPER_SHELL, LAUNCH_TEXT, rules ?? '', ...baseArguments(bases)],
      'bwrap',
      ...namespaces(isRoot, rules === null),
      ...root(layout, resolverFile),
      ...(bases.isInTmp ? [] : [...foldersAbove(layout.keep), '--bind', bases.work, layout.keep]),
      ...[
        '--bind',
        bases.tmp,
        '/tmp',
        '--bind',
        bases.shm,
        '/dev/shm',
        '--remount-ro',
        '/dev',
        '--remount-ro',
        '/',
        '--chdir',
        '/',
      ],
      ...['--', HELPER_SHELL, '-c', HELPER_TEXT, 'sh', 'serve', ...helperArguments(limits), 'drop'],
    ]),
  };
}

/** Root's own number, so that the machine's files look like root's, and those of the stages. */
function idMapOf(users: SandboxLayout['users']): string {
  if (users === undefined) return '0 0 1\n';
  return `0 0 1\n${users.first} ${users.first} ${users.last - users.first + 1}\n`;
}

function namespaces(isRoot: boolean, isOffline: boolean): string[] {
  return [
    ...['--unshare-pid', '--as-pid-1', '--unshare-ipc', '--unshare-uts', '--unshare-cgroup-try', '--new-session'],
    ...['--die-with-parent', '--seccomp', '10', ...(isOffline ? ['--unshare-net'] : [])],
    // The stage gets its owner's own number back.
    ...(isRoot ? [] : ['--unshare-user', '--uid', String(process.getuid?.()), '--gid', String(process.getgid?.())]),
    ...['--cap-drop', 'ALL', ...HELPER_RIGHTS.flatMap((right) => ['--cap-add', right])],
  ];
}

function root({ keep, hidden, paths }: SandboxLayout, resolverFile: string): string[] {
  const shown = [...PROGRAMS, ...paths];
  const args: string[] = [];
  for (const path of shown) args.push(...foldersAbove(path), ...asItIs(path));
  args.push('--ro-bind-try', '/sys/devices/system', '/sys/devices/system', '--proc', '/proc', '--dev', '/dev');
  // Where the owner is not root, its number is that of root to the network's namespace, and so may change its settings.
  args.push('--ro-bind', '/proc/sys', '/proc/sys');
  for (const path of EMPTY_FOLDERS) args.push('--dir', path);
  for (const [path, target] of [
    ['/var/tmp', '/tmp'],
    ['/var/run', '/run'],
  ] as const)
    if (!contains(path, keep)) args.push('--symlink', target, path);
  for (const folder of hidden)
    if (shown.some((path) => contains(path, folder)) && isThere(folder)) args.push('--tmpfs', folder);
  const resolver = resolverPath();
  if (resolver !== null) args.push(...foldersAbove(resolver), '--ro-bind', resolverFile, resolver);
  return args;
}

/** Bubblewrap would make them for itself alone. */
function foldersAbove(path: string): string[] {
  const above = dirname(path);
  return above === path ? [] : [...foldersAbove(above), '--dir', above];
}

function asItIs(path: string): string[] {
  const found = lstatSync(path, { throwIfNoEntry: false });
  if (found === undefined) return [];
  return found.isSymbolicLink() ? ['--symlink', readlinkSync(path), path] : ['--ro-bind', path, path];
}

function contains(folder: string, path: string): boolean {
  const inside = relative(folder, path);
  return inside === '' || (!inside.startsWith('..') && !isAbsolute(inside));
}

function isThere(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
}

/** Where /etc/resolv.conf leads, to be made there; null where a machine has none. */
function resolverPath(): string | null {
  try {
    return realpathSync(RESOLVER);
  } catch {
    return null;
  }
}
