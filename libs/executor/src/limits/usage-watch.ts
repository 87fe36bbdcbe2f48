/**
 * Watches what a running stage takes where the kernel does not bound it: the disk, always, and memory where there is no control
 * group. A disk is measured as soon as it has lost a good part of what the stage may take: walking a tree of a hundred thousand
 * files each second would cost more than many a stage. What others free meanwhile hides what the stage takes, so it is measured now
 * and then in any case, as seldom as that costs next to nothing.
 */
import { execFile } from 'node:child_process';
import { readFileSync, statfsSync } from 'node:fs';
import { statfs } from 'node:fs/promises';
import { promisify } from 'node:util';
import { descendantsOf, ProcessTree } from '../system/proc.ts';
import type { StageLimits } from './stage-limits.ts';

const WATCH_MS = 1_000;
/** Between two measurements that nothing asks for: at least so long, and so many times what the last one took. */
const REST_MS_MIN = 10_000;
const REST_TIMES = 100;
/** Of a limit: so much must have gone from the disk before the stage's part in that is measured. */
const MEASURED_FROM = 0.5;
const PAGE_BYTES = 4096;
/** One for all: without a reason Node makes an exception with its stack at each end of a stage, measuring or not. */
const STAGE_ENDED = new Error('the stage has ended');

export interface Watched {
  /** What the stage writes to, on whatever disks. */
  readonly folders: readonly string[];
  /** Folders on those disks that others watch too: each is looked at once for all of them. Absent: the stage's own. */
  readonly disks?: readonly string[] | undefined;
  /** What measures them, as `du` does; absent: that. */
  readonly measuring?: readonly string[] | undefined;
  /** Whose descendants the stage's processes are; absent: a control group bounds their memory. */
  readonly helperPid: number | undefined;
  readonly limits: StageLimits;
  /** Bytes that the stage takes where nobody here can look. */
  readonly elsewhere?: (() => Promise<number>) | undefined;
  readonly onExceeded: (what: 'memory' | 'disk', remark: string) => void;
}

export class UsageWatch {
  readonly #watched: Watched;
  readonly #timer: NodeJS.Timeout;
  /** Of the disk of each folder. */
  readonly #freeAtStart: readonly Room[];
  #isLooking = false;
  #isOver = false;
  /** A measurement is given the time that it takes: of a tree that is slow to walk, a part would pass for nothing. It ends with the stage. */
  readonly #measuring = new AbortController();
  #measureFrom = performance.now() + REST_MS_MIN;

  constructor(watched: Watched) {
    this.#watched = watched;
    this.#freeAtStart = watched.disks?.map(recentRoomOf) ?? watched.folders.map((folder) => roomOf(statfsSync(folder)));
    this.#timer = setInterval(() => void this.#look(), WATCH_MS);
    this.#timer.unref();
  }

  close(): void {
    this.#isOver = true;
    clearInterval(this.#timer);
    this.#measuring.abort(STAGE_ENDED);
  }

  async #look(): Promise<void> {
    this.#lookAtMemory();
    if (this.#isLooking) return;
    this.#isLooking = true;
    try {
      await this.#lookAtDisk();
    } catch {
      // A folder that the stage has removed meanwhile takes nothing.
    } finally {
      this.#isLooking = false;
    }
  }

  #lookAtMemory(): void {
    const { helperPid, limits } = this.#watched;
    if (helperPid === undefined) return;
    const bytes = descendantsOf(helperPid, recentTree(performance.now())).reduce(
      (sum, { pid }) => sum + residentBytes(pid),
      0,
    );
    if (bytes > limits.memoryBytes)
      this.#exceeded('memory', `the stage takes ${bytes} bytes of memory; ${limits.memoryBytes} are allowed`);
  }

  async #lookAtDisk(): Promise<void> {
    const { folders, disks = folders, limits } = this.#watched;
    if (folders.length === 0) return;
    const rooms = await Promise.all(disks.map(async (folder) => roomOf(await statfs(folder))));
    const hasLostMuch = rooms.some((room, at) => {
      const { bytes, inodes } = this.#freeAtStart[at] ?? room;
      return (
        bytes - room.bytes >= limits.diskBytes * MEASURED_FROM || inodes - room.inodes >= limits.inodes * MEASURED_FROM
      );
    });
    const startedAt = performance.now();
    if (!hasLostMuch && startedAt < this.#measureFrom) return;
    await this.#measure();
    const endedAt = performance.now();
    this.#measureFrom = endedAt + Math.max(REST_MS_MIN, REST_TIMES * (endedAt - startedAt));
  }

  async #measure(): Promise<void> {
    const { folders, measuring = ['du'], limits, elsewhere } = this.#watched;
    const { signal } = this.#measuring;
    const bytes = (await measured(measuring, ['--block-size=1'], folders, signal)) + ((await elsewhere?.()) ?? 0);
    if (bytes > limits.diskBytes)
      return this.#exceeded('disk', `the stage takes ${bytes} bytes of the disk; ${limits.diskBytes} are allowed`);
    const inodes = await measured(measuring, ['--inodes'], folders, signal);
    if (inodes > limits.inodes)
      this.#exceeded('disk', `the stage has made ${inodes} files and folders; ${limits.inodes} are allowed`);
  }

  #exceeded(what: 'memory' | 'disk', remark: string): void {
    if (this.#isOver) return;
    this.close();
    this.#watched.onExceeded(what, remark);
  }
}

/** One that has thousands of processes would cost the others a look at each of them for each stage that is watched. */
const TREE_MS = WATCH_MS / 2;
let recent: { readonly tree: ProcessTree; readonly at: number } | undefined;

/** The machine's processes as they are, or were a moment ago. */
export function recentTree(now: number): ProcessTree {
  if (recent === undefined || now - recent.at >= TREE_MS) recent = { tree: new ProcessTree(), at: now };
  return recent.tree;
}

interface Room {
  readonly bytes: number;
  readonly inodes: number;
}

/** Where stages are short, many begin within the same moment. */
const RECENT_MS = 100;
const RECENT_MAX = 1_000;
const recentRooms = new Map<string, { readonly room: Room; readonly at: number }>();

function recentRoomOf(folder: string): Room {
  const now = performance.now();
  const recent = recentRooms.get(folder);
  if (recent !== undefined && now - recent.at < RECENT_MS) return recent.room;
  const room = roomOf(statfsSync(folder));
  if (recentRooms.size >= RECENT_MAX) recentRooms.clear();
  recentRooms.set(folder, { room, at: now });
  return room;
}

function roomOf({ bavail, bsize, ffree }: { bavail: number; bsize: number; ffree: number }): Room {
  return { bytes: bavail * bsize, inodes: ffree };
}

/** The last line of `du`, whatever it could not read. */
async function measured(
  [file = '', ...words]: readonly string[],
  flags: readonly string[],
  folders: readonly string[],
  signal: AbortSignal,
): Promise<number> {
  const run = promisify(execFile);
  const options = { signal, maxBuffer: 1024 ** 2 };
  const { stdout } = await run(file, [...words, '-scx', ...flags, '--', ...folders], options).catch(
    (error: { stdout?: string }) => ({ stdout: error.stdout ?? '' }),
  );
  return Number(/^(\d+)\s+total$/m.exec(stdout)?.[1] ?? 0);
}

function residentBytes(pid: number): number {
  try {
    return Number(readFileSync(`/proc/${pid}/statm`, 'utf8').split(' ')[1]) * PAGE_BYTES;
  } catch {
    return 0;
  }
}
