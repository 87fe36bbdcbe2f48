/** What one stage may take of its machine, and the shell commands by which helpers and stages bound themselves. */
import { statfsSync } from 'node:fs';
import { availableParallelism, totalmem } from 'node:os';

export interface StageLimits {
  readonly memoryBytes: number;
  readonly processes: number;
  /** Of its run's folder and /tmp together; also the size of one file. */
  readonly diskBytes: number;
  /** Files and folders there. */
  readonly inodes: number;
  readonly openFiles: number;
}

const MEMORY_SHARE = 0.9;
const MEMORY_BYTES_MIN = 256 * 1024 ** 2;
/** A build with a compiler a processor has some hundreds; the kernel has numbers for 32,768 on a small machine. */
const PROCESSES_MAX = 4096;
const DISK_SHARE = 0.9;
const DISK_BYTES_MIN = 1024 ** 3;
const INODES_MIN = 100_000;
const OPEN_FILES = 65_536;

/** What a machine gives when its stages share it equally: `folder` is on the disk that they write to. */
export function defaultLimits(folder: string, slots = availableParallelism()): StageLimits {
  const { bavail, bsize, ffree } = statfsSync(folder);
  return {
    memoryBytes: Math.max(MEMORY_BYTES_MIN, Math.floor((totalmem() * MEMORY_SHARE) / slots)),
    processes: PROCESSES_MAX,
    diskBytes: Math.max(DISK_BYTES_MIN, Math.floor((bavail * bsize * DISK_SHARE) / slots)),
    // A file system that makes them as it needs them says none.
    inodes: ffree === 0 ? Number.MAX_SAFE_INTEGER : Math.max(INODES_MIN, Math.floor((ffree * DISK_SHARE) / slots)),
    openFiles: OPEN_FILES,
  };
}

/** Of a helper: commands of a POSIX shell, whose complaints go nowhere. */
export interface ShellLimits {
  /** The helper's, and so its stages'. */
  readonly inherited: string;
  /** Of each stage: the helper would be bounded with what it is to end. */
  readonly own: string;
}

export const NO_SHELL_LIMITS: ShellLimits = { inherited: '', own: '' };

/** `bySelf`: no control group counts its processes. */
export function shellLimits({ diskBytes, openFiles, processes }: StageLimits, bySelf: boolean): ShellLimits {
  return {
    inherited: ['ulimit -c 0', `ulimit -f ${Math.ceil(diskBytes / 512)}`, `ulimit -n ${openFiles}`].join('; '),
    // dash and busybox say -p, bash -u.
    own: bySelf ? `ulimit -p ${processes} || ulimit -u ${processes}` : '',
  };
}
