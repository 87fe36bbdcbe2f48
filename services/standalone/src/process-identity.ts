/**
 * Telling a process from a later one with the same number: its start time, and the boot that it is counted from.
 * Without /proc (not Linux) the start time is what `ps` says.
 */
import { readFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { execa } from 'execa';

export interface ProcessIdentity {
  readonly pid: number;
  readonly startedAt: string;
}

const POLL_MS = 20;

/** Null: there is no such process, or only its zombie. */
export async function identify(pid: number): Promise<ProcessIdentity | null> {
  const startedAt = process.platform === 'linux' ? await startedAtLinux(pid) : await startedAtElsewhere(pid);
  return startedAt === null ? null : { pid, startedAt };
}

async function startedAtLinux(pid: number): Promise<string | null> {
  try {
    const [stat, boot] = await Promise.all([
      readFile(`/proc/${pid}/stat`, 'utf8'),
      readFile('/proc/sys/kernel/random/boot_id', 'utf8'),
    ]);
    // The second field is the name in brackets and may contain anything; the state is the third, the start time the 22nd.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return fields[0] === 'Z' || fields[0] === 'X' ? null : `${boot.trim()}/${fields[19]}`;
  } catch {
    return null;
  }
}

async function startedAtElsewhere(pid: number): Promise<string | null> {
  const { stdout, exitCode } = await execa('ps', ['-o', 'lstart=', '-p', String(pid)], { reject: false });
  return exitCode === 0 && stdout.trim() !== '' ? stdout.trim() : null;
}

export async function isAlive(identity: ProcessIdentity): Promise<boolean> {
  return (await identify(identity.pid))?.startedAt === identity.startedAt;
}

/** SIGTERM, after `graceMs` SIGKILL; resolves when the process is gone, false: it is still there `graceMs` after that. */
export async function endProcess(identity: ProcessIdentity, graceMs: number): Promise<boolean> {
  for (const signal of ['SIGTERM', 'SIGKILL'] as const) {
    if (!(await isAlive(identity))) return true;
    try {
      process.kill(identity.pid, signal);
    } catch {
      // Gone between the look and the signal; the next look says so.
    }
    // Not a child of ours: nobody tells us of its end, so we look.
    for (const until = performance.now() + graceMs; performance.now() < until; await sleep(POLL_MS)) {
      if (!(await isAlive(identity))) return true;
    }
  }
  return false;
}
