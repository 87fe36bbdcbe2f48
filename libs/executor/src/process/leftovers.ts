/**
 * The list of processes that must not outlive their owner, kept in a file so that the owner's next start can end what
 * a crash has left (P17). Each line is a pid and its start time; the first is the boot they belong to.
 */
import { appendFileSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { bootId, isAlive, type ProcessIdentity, signalProcess } from '../system/proc.ts';

/** Lines of processes that are gone stay until the file is written anew: when there are so many, and half of them are. */
const LINES_MAX = 512;
const POLL_MS = 10;

export class Leftovers {
  readonly #file: string;
  readonly #live = new Map<number, string>();
  #lines = 0;

  /** Begins an empty list: call `killLeftovers` with the old one before. */
  constructor(file: string) {
    this.#file = file;
    this.#rewrite();
  }

  add(processes: readonly ProcessIdentity[]): void {
    for (const { pid, startTime } of processes) this.#live.set(pid, startTime);
    if (this.#lines + processes.length > Math.max(LINES_MAX, 2 * this.#live.size)) {
      try {
        return this.#rewrite();
      } catch {
        // The disk is full: the longer one is true, too.
      }
    }
    this.#lines += processes.length;
    // A line begins anew behind one that a full disk has cut short.
    appendFileSync(this.#file, `\n${processes.map(({ pid, startTime }) => `${pid} ${startTime}\n`).join('')}`);
  }

  remove(processes: readonly ProcessIdentity[]): void {
    for (const { pid, startTime } of processes) if (this.#live.get(pid) === startTime) this.#live.delete(pid);
  }

  #rewrite(): void {
    const lines = [...this.#live].map(([pid, startTime]) => `${pid} ${startTime}\n`);
    const next = `${this.#file}.new`;
    try {
      writeFileSync(next, `${bootId()}\n${lines.join('')}`, { mode: 0o600 });
      // The list before is there until the next one is whole.
      renameSync(next, this.#file);
    } catch (error) {
      rmSync(next, { force: true });
      throw error;
    }
    this.#lines = lines.length;
  }
}

/**
 * Kills every listed process that still is the one that was listed, waits until it is gone and removes the file.
 * Answers how many there were. Throws where one is still there after `deadlineMs`.
 */
export async function killLeftovers(file: string, deadlineMs = 10_000): Promise<number> {
  const listed = readListed(file).filter((process) => process.startTime !== '' && isAlive(process));
  for (const process of listed) signalProcess(process, 'SIGKILL');
  const deadline = performance.now() + deadlineMs;
  for (let left = listed; left.length > 0; left = left.filter(isAlive)) {
    if (performance.now() > deadline)
      throw new Error(`processes of the last start do not end: ${left.map(({ pid }) => pid).join(', ')}`);
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
  rmSync(file, { force: true });
  return listed.length;
}

function readListed(file: string): ProcessIdentity[] {
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch {
    return [];
  }
  const [boot, ...lines] = text.split('\n');
  if (boot !== bootId()) return [];
  const found = new Map<string, ProcessIdentity>();
  for (const line of lines) {
    const match = /^(\d+) (\d+)$/.exec(line);
    if (match?.[1] !== undefined && match[2] !== undefined)
      found.set(line, { pid: Number(match[1]), startTime: match[2] });
  }
  return [...found.values()];
}
