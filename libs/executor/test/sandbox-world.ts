/** The machine of a sandbox's owner, for tests: its user, and a network of its own that leads nowhere else. */
import { execFile, execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import type { OwnerResult, OwnerTask } from './sandbox-owner.ts';

const OWNER = fileURLToPath(new URL('./sandbox-owner.ts', import.meta.url));
/** Nobody's on any machine. */
const ORDINARY_UID = 454_545;
const STAGE_UIDS = { first: 320_000, last: 320_099 };

/** Addresses of the machine that the owner believes to be on. */
export const OWN = { open: '203.0.113.1', private: '10.77.0.1', linkLocal: '169.254.169.254', denied: '203.0.113.9' };

export interface World {
  readonly title: string;
  readonly users?: { readonly first: number; readonly last: number } | undefined;
  readonly dataDir: string;
  run(task: Omit<OwnerTask, 'dataDir' | 'users'>): Promise<OwnerResult[]>;
  remove(): void;
}

/** As root, and as an ordinary user where root can become one; else as whoever runs the tests, whose network is the machine's. */
export function titles(): readonly ('root' | 'an ordinary user')[] {
  if (process.getuid?.() !== 0) return ['an ordinary user'];
  return canOrdinaryUserRead() ? ['root', 'an ordinary user'] : ['root'];
}

export function makeWorld(title: 'root' | 'an ordinary user'): World {
  const isRoot = process.getuid?.() === 0;
  // Not under /tmp, which a stage has as its own.
  const dataDir = mkdtempSync('/var/tmp/penstock-world-');
  const asOrdinary = isRoot && title !== 'root';
  if (asOrdinary) execFileSync('chown', [String(ORDINARY_UID), dataDir]);
  const users = title === 'root' ? STAGE_UIDS : undefined;
  const owner = [process.execPath, OWNER];
  return {
    title,
    dataDir,
    users,
    run: async (task) => {
      const text = JSON.stringify({ ...task, dataDir, users } satisfies OwnerTask);
      const command = isRoot
        ? ['unshare', '--net', '--mount', 'sh', '-c', NETWORK, 'sh', ...(asOrdinary ? ORDINARY : []), ...owner, text]
        : [...owner, text];
      const [file = '', ...args] = command;
      const env = {
        PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
        HOME: dataDir,
        CANARY: 'of-the-owner',
      };
      const { stdout } = await promisify(execFile)(file, args, { cwd: '/', env, maxBuffer: 64 * 1024 ** 2 });
      return JSON.parse(stdout) as OwnerResult[];
    },
    remove: () => rmSync(dataDir, { recursive: true, force: true }),
  };
}

const ORDINARY = ['setpriv', `--reuid=${ORDINARY_UID}`, `--regid=${ORDINARY_UID}`, '--clear-groups', '--'];

/** A device for tunnels that everybody may open, as distributions have it, and addresses. */
const NETWORK = [
  'set -e',
  'device=$(mktemp -u /var/tmp/penstock-tun-XXXXXX); mknod -m 666 "$device" c 10 200; mount --bind "$device" /dev/net/tun; rm -f "$device"',
  'ip link set lo up',
  ...Object.values(OWN).map((address) => `ip addr add ${address}/32 dev lo`),
  'exec "$@"',
].join('\n');

/** The checkout may lie in root's home. */
function canOrdinaryUserRead(): boolean {
  try {
    execFileSync(ORDINARY[0] ?? '', [...ORDINARY.slice(1), 'cat', OWNER], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}
