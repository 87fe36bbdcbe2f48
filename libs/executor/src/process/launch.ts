/** How a helper of plain processes is started: the ways from the best to the last, and the command line of each. */
import { statSync } from 'node:fs';
import { dirname, relative, isAbsolute } from 'node:path';
import type { ShellLimits } from '../limits/stage-limits.ts';
import { withoutStrayDescriptors, type LaunchCommand } from '../system/descriptors.ts';
import { HELPER_SHELL, HELPER_TEXT, LAUNCH_TEXT } from './scripts.ts';
import { basesOf, sharedBases, table, type Bases, type Entry } from './view.ts';

/**
 * - `namespace`: PID 1 of a PID and mount namespace; needs root's rights.
 * - `user-namespace`: the same inside a user namespace.
 * - `group`: a process group, where neither is to be had; a stage's daemon that leaves the group escapes.
 * - `sandbox`: all namespaces and a root of its own, by bubblewrap.
 */
export type Isolation = 'namespace' | 'user-namespace' | 'group' | 'sandbox';

/** One helper's start. */
export interface Launch extends LaunchCommand {
  readonly isolation: Isolation;
  /** What is mounted before the helper starts. Absent: it has no launcher that mounts. */
  readonly mounts?: string | undefined;
  /** Absent: its stages see what the owner sees. */
  readonly bases?: Bases | undefined;
  /** The maps of its user namespace, which the owner writes. */
  readonly idMap?: string | undefined;
  /** Whether a network stack comes up beside it, to be waited for. */
  readonly hasStack?: boolean | undefined;
  /** What its processes may ask of the kernel, as a program for seccomp. */
  readonly filter?: Uint8Array | undefined;
  /** Whether the helper forks the process of its next stage when it has reported one. */
  readonly forksAhead?: boolean | undefined;
}

export interface CoveredFolder {
  /** Looks empty to stages. */
  readonly cover: string;
  /** Stays visible although it lies inside; absent: nothing does. */
  readonly keep?: string | undefined;
}

export interface LaunchOptions {
  readonly covered: CoveredFolder | undefined;
  /** The folder that holds the pipes of helpers yet to come. */
  readonly pipes: string;
  readonly limits: ShellLimits;
  /** Whether stages have users of their own, where this process can give them: the helper keeps what that takes, and no more. */
  readonly hasUsers?: boolean | undefined;
  /** Whether stages may do all that their helper may: who runs what is his own, as in a local run. */
  readonly sharesRights?: boolean | undefined;
  /** Whether a helper forks the process of its next stage when it has reported one. */
  readonly forksAhead?: boolean | undefined;
}

export function isolationsToTry(): readonly Isolation[] {
  if (process.platform !== 'linux') return ['group'];
  return process.getuid?.() === 0 ? ['namespace', 'user-namespace', 'group'] : ['user-namespace', 'group'];
}

export function launchPlain(isolation: Isolation, options: LaunchOptions): Launch {
  const { covered, pipes, limits, hasUsers = false, sharesRights = false, forksAhead = false } = options;
  if (isolation === 'group')
    return {
      isolation,
      ...withoutStrayDescriptors([
        ...(process.platform === 'linux' ? DIE_WITH_OWNER : []),
        ...[HELPER_SHELL, '-c', HELPER_TEXT, 'sh', 'once', ...helperArguments(limits)],
      ]),
    };
  const user = isolation === 'user-namespace';
  const isBounded = !user && hasUsers;
  const keep = keptInside(covered);
  const bases = keep === undefined ? undefined : basesOf(keep, { work: keep, tmp: '/tmp', shm: '/dev/shm' });
  const entries: Entry[] = [
    ...(covered === undefined ? [] : [['cover', covered.cover, 'tmpfs', 'size=64k,mode=755'] as const]),
    ['pipes', pipes, 'tmpfs', 'size=4k,mode=700'],
    ...(bases === undefined ? [] : sharedBases(bases)),
  ];
  return {
    isolation,
    mounts: table(entries),
    bases,
    forksAhead,
    ...commandOf([
      ...(isBounded ? ['setpriv', '--pdeathsig', 'KILL', `--inh-caps=-all,${USER_RIGHTS}`, '--'] : DIE_WITH_OWNER),
      ...['unshare', ...(user ? ['--user', '--map-root-user'] : []), '--mount', '--propagation', 'private', '--'],
      ...[HELPER_SHELL, '-c', LAUNCH_TEXT, 'launch', 'inner', '', '', ...baseArguments(bases)],
      // It sees the launcher's mounts come and go, and the launcher none of its own.
      ...['unshare', '--pid', '--mount', '--propagation', 'slave', '--mount-proc', '--fork', '--kill-child=KILL', '--'],
      // In a session of its own, so that a stage that signals its own group (`kill 0`) does not reach the launcher.
      ...['setsid', ...(user ? asOwner(sharesRights) : isBounded ? bounded(limits) : AS_ROOT), '--no-new-privs', '--'],
      ...[HELPER_SHELL, '-c', HELPER_TEXT, 'sh', 'serve', ...helperArguments(limits)],
      ...[user && !sharesRights ? 'bounded' : isBounded ? 'users' : '', forksAhead ? 'ahead' : ''],
    ]),
  };
}

/**
 * Root's stages stay root, but for what would uncover the data (mounts, files opened by their number, raw disks and memory), end
 * the namespace, or leave files that cannot be removed.
 */
const AS_ROOT = [
  'setpriv',
  '--bounding-set=-sys_admin,-dac_read_search,-mknod,-sys_rawio,-sys_module,-sys_boot,-linux_immutable',
];

/** To make a stage its user, and to end it: all that the helper of stages with users is left of root's. */
const USER_RIGHTS = '+setuid,+setgid,+kill';

/**
 * Of root's helper whose stages have users of their own. Its bounding set is empty, so its stages' are: what it keeps it has as rights that
 * are inherited, which nothing but root's number makes use of. To raise a limit takes another right: that comes first.
 */
function bounded({ inherited }: ShellLimits): string[] {
  return [
    ...[HELPER_SHELL, '-c', `${inherited}\nexec "$@"`, 'sh'],
    ...['setpriv', '--bounding-set=-all', '--clear-groups'],
  ];
}

/**
 * Inside a user namespace the mounts needed root's number; the stage gets the owner's own back, and with it loses the right to
 * undo them. Its helper is the same user and keeps a right that the stage has not: so the kernel refuses the stage the helper's
 * memory and descriptors. It says nothing that PID 1 could not do anyway. A helper that shares its rights has none, as its stages, which
 * are forked from it as they are then: to take the right from each costs two programs more.
 */
function asOwner(sharesRights: boolean): string[] {
  const [uid, gid] = [process.getuid?.(), process.getgid?.()];
  const rights = sharesRights ? '-all' : '-all,+kill';
  return [
    ...['unshare', '--user', `--map-user=${uid}`, `--map-group=${gid}`, '--keep-caps'],
    ...['setpriv', `--inh-caps=${rights}`, `--ambient-caps=${rights}`, '--bounding-set=-all'],
  ];
}

/** As `helper.sh` takes them. */
export function helperArguments({ inherited, own }: ShellLimits): string[] {
  return [HELPER_SHELL, inherited, own];
}

/** As `launch.sh` takes them. */
export function baseArguments(bases: Bases | undefined): string[] {
  return bases === undefined ? ['', '', '', ''] : [bases.keep, bases.work, bases.tmp, bases.shm];
}

/** Of a launch with mounts: it is given descriptors of its own up to 10 (see `launch.sh`). */
export function commandOf(command: readonly string[]): LaunchCommand {
  return withoutStrayDescriptors(command, LAUNCH_DESCRIPTOR_MAX);
}

const LAUNCH_DESCRIPTOR_MAX = 10;

export const DIE_WITH_OWNER = ['setpriv', '--pdeathsig', 'KILL', '--'];

function keptInside(covered: CoveredFolder | undefined): string | undefined {
  if (covered?.keep === undefined) return undefined;
  const inside = relative(covered.cover, covered.keep);
  return inside === '' || inside.startsWith('..') || isAbsolute(inside) ? undefined : covered.keep;
}

/**
 * What has to be covered so that another user reaches `path` and sees nothing beside it: the uppermost folder above it that
 * only its owner may enter (root's home, say), else the folder itself.
 */
export function coverFor(path: string): string {
  const ancestors: string[] = [];
  for (let folder = path; dirname(folder) !== folder; folder = dirname(folder)) ancestors.unshift(folder);
  return ancestors.find((folder) => (statSync(folder).mode & ENTERED_BY_OTHERS) === 0) ?? path;
}

const ENTERED_BY_OTHERS = 0o001;
