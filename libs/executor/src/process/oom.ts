/**
 * Tells a stage that the kernel killed for want of memory from one that was killed otherwise: the count of such kills,
 * in this process's own control group where it tells, else on the whole machine.
 */
import { closeSync, openSync, readFileSync, readSync } from 'node:fs';

const READ_BYTES = 8_192;

export class OomCounter {
  readonly #fd: number | null = null;
  readonly #buffer = Buffer.allocUnsafe(READ_BYTES);

  constructor() {
    for (const path of [...ownGroupFiles(), '/proc/vmstat']) {
      try {
        const fd = openSync(path, 'r');
        this.#fd = fd;
        if (this.read() !== null) return;
        closeSync(fd);
      } catch {
        // Not here.
      }
      this.#fd = null;
    }
  }

  /** Kills so far, null where nothing tells. */
  read(): number | null {
    if (this.#fd === null) return null;
    const bytes = readSync(this.#fd, this.#buffer, 0, READ_BYTES, 0);
    const count = /^oom_kill (\d+)/m.exec(this.#buffer.toString('latin1', 0, bytes))?.[1];
    return count === undefined ? null : Number(count);
  }

  close(): void {
    if (this.#fd !== null) closeSync(this.#fd);
  }
}

function ownGroupFiles(): string[] {
  let groups: string;
  try {
    groups = readFileSync('/proc/self/cgroup', 'utf8');
  } catch {
    return [];
  }
  const unified = /^0::(\/.*)$/m.exec(groups)?.[1];
  const memory = /^\d+:(?:[^:]*,)?memory(?:,[^:]*)?:(\/.*)$/m.exec(groups)?.[1];
  return [
    ...(memory === undefined ? [] : [`/sys/fs/cgroup/memory${memory}/memory.oom_control`]),
    ...(unified === undefined ? [] : [`/sys/fs/cgroup${unified}/memory.events`]),
  ];
}
