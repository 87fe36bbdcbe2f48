/** How a helper is started: the ways from the best to the last, and the command line of each. */
import { existsSync, statSync } from 'node:fs';
import { dirname, relative, isAbsolute } from 'node:path';
import { fileURLToPath } from 'node:url';
import { withoutStrayDescriptors, type LaunchCommand } from '../system/descriptors.ts';

/**
 * - `namespace`: PID 1 of a PID and mount namespace; needs root's rights.
 * - `user-namespace`: the same inside a user namespace.
 * - `group`: a process group, where neither is to be had; a stage's daemon that leaves the group escapes.
 */
export type Isolation = 'namespace' | 'user-namespace' | 'group';

export interface CoveredFolder {
  /** Looks empty to stages. */
  readonly cover: string;
  /** Stays visible although it lies inside; absent: nothing does. */
  readonly keep?: string | undefined;
}

const HELPER_SCRIPT = fileURLToPath(new URL('./helper.sh', import.meta.url));
/** dash forks and reads twice as fast as bash; where `sh` is something else, that serves too. */
const HELPER_SHELL = ['/bin/dash', '/usr/bin/dash'].find((path) => existsSync(path)) ?? '/bin/sh';

export function isolationsToTry(): readonly Isolation[] {
  if (process.platform !== 'linux') return ['group'];
  return process.getuid?.() === 0 ? ['namespace', 'user-namespace', 'group'] : ['user-namespace', 'group'];
}

/** `pipes` is the folder that holds the pipes of helpers yet to come. */
export function launchCommand(isolation: Isolation, covered: CoveredFolder | undefined, pipes: string): LaunchCommand {
  const own = [HELPER_SHELL, HELPER_SCRIPT];
  if (isolation === 'group')
    return withoutStrayDescriptors([
      ...(process.platform === 'linux' ? DIE_WITH_OWNER : []),
      ...own,
      'once',
      HELPER_SHELL,
    ]);
  const user = isolation === 'user-namespace';
  const [uid, gid] = user ? [String(process.getuid?.()), String(process.getgid?.())] : ['', ''];
  // In a session of its own, so that a stage that signals its own group (`kill 0`) does not reach the launcher.
  const boot = ['setsid', ...own, 'boot', covered?.cover ?? '', keptInside(covered), pipes, uid, gid, HELPER_SHELL];
  const names = [
    ...(user ? ['--user', '--map-root-user'] : []),
    '--pid',
    '--mount',
    '--mount-proc',
    '--fork',
    '--kill-child=KILL',
  ];
  return withoutStrayDescriptors([...DIE_WITH_OWNER, 'unshare', ...names, '--', ...boot]);
}

const DIE_WITH_OWNER = ['setpriv', '--pdeathsig', 'KILL', '--'];

function keptInside(covered: CoveredFolder | undefined): string {
  if (covered?.keep === undefined) return '';
  const inside = relative(covered.cover, covered.keep);
  return inside === '' || inside.startsWith('..') || isAbsolute(inside) ? '' : covered.keep;
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
