/**
 * The executor's small files: FIFOs, jobs and scripts too long for an argument. They lie in memory where there is
 * /dev/shm, since a job holds its stage's environment, and FIFOs and jobs lose their names as soon as both sides have
 * them open, so that no stage can reach another's.
 */
import { execFileSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import {
  chmodSync,
  closeSync,
  constants,
  fchownSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  rmSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { HelperFailed } from '../contract/errors.ts';
import type { StageUser } from '../contract/port.ts';
import { MEMORY, ownerMark, pidNamespace } from '../system/memory.ts';
import { isAlive } from '../system/proc.ts';

/** Node makes no FIFOs itself, and a process is too dear to make each alone. */
const FIFOS_A_BATCH = 32;

export interface PipeEnds {
  readonly readFd: number;
  readonly writeFd: number;
}

export class Scratch {
  readonly pipesFolder: string;
  /** Only the owner enters it. */
  readonly privateFolder: string;
  readonly #folder: string;
  readonly #fifos: string[] = [];
  #made = 0;

  constructor() {
    const parent = memoryFolder();
    removeOrphans(parent);
    this.#folder = mkdtempSync(join(parent, `penstock-${ownerMark()}-`));
    // Stages with a user of their own find their scripts here, by name only.
    chmodSync(this.#folder, 0o711);
    this.pipesFolder = join(this.#folder, 'pipes');
    this.privateFolder = join(this.#folder, 'private');
    for (const folder of [this.pipesFolder, this.privateFolder]) mkdirSync(folder, { mode: 0o700 });
  }

  /** The reading end does not block; the writing end is to be given to a child and closed. */
  pipe(): PipeEnds {
    if (this.#fifos.length === 0) this.#makeFifos();
    const path = this.#fifos.pop();
    if (path === undefined) throw new Error('mkfifo made nothing');
    const readFd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
    try {
      return { readFd, writeFd: openSync(path, constants.O_WRONLY) };
    } catch (error) {
      closeSync(readFd);
      throw error;
    } finally {
      unlinkSync(path);
    }
  }

  /** A pipe that is its own other end: what one process of a helper's start writes, another one reads. */
  loop(): number {
    if (this.#fifos.length === 0) this.#makeFifos();
    const path = this.#fifos.pop();
    if (path === undefined) throw new Error('mkfifo made nothing');
    try {
      return openSync(path, constants.O_RDWR);
    } finally {
      unlinkSync(path);
    }
  }

  /** A file of its own that whoever may enter the folder can read: nothing of a stage's. */
  publicFile(name: string, content: string): string {
    const path = join(this.#folder, name);
    writeFileSync(path, content, { mode: 0o444 });
    return path;
  }

  /** A file without a name where /proc can open it again (Linux), else with one. */
  jobFile(): { readonly fd: number; readonly path: string | null } {
    const path = this.#next('job');
    const fd = openSync(path, 'wx+', 0o600);
    if (process.platform !== 'linux') return { fd, path };
    unlinkSync(path);
    return { fd, path: null };
  }

  /** A descriptor at the beginning of a file without a name. */
  fileWith(content: Uint8Array): number {
    const path = this.#next('file');
    try {
      writeFileSync(path, content, { mode: 0o600, flag: 'wx' });
      return openSync(path, 'r');
    } finally {
      rmSync(path, { force: true });
    }
  }

  /** `folder`: where the stage sees it, and may do to it what it likes; absent: where it sees everything. */
  writeScript(script: string, user: StageUser | undefined, folder: string | undefined): string {
    const path = folder === undefined ? this.#next('script') : join(folder, `.script-${randomUUID()}`);
    const fd = openSync(path, 'wx', 0o600);
    try {
      writeFileSync(fd, script);
      if (user !== undefined) fchownSync(fd, user.uid, user.gid);
    } catch (error) {
      // What has no room would take the last of it, for as long as the executor is there.
      this.remove(path);
      throw error;
    } finally {
      closeSync(fd);
    }
    return path;
  }

  remove(path: string): void {
    try {
      rmSync(path, { force: true });
    } catch {
      // The stage has put something else in its place, which goes with its folder.
    }
  }

  close(): void {
    rmSync(this.#folder, { recursive: true, force: true });
  }

  #makeFifos(): void {
    for (let i = 0; i < FIFOS_A_BATCH; i += 1) this.#fifos.push(this.#next('pipes/pipe'));
    try {
      execFileSync('mkfifo', ['-m', '600', ...this.#fifos], { stdio: 'ignore' });
    } catch (error) {
      this.#fifos.length = 0;
      throw withoutMkfifo(error);
    }
  }

  #next(kind: string): string {
    this.#made += 1;
    return join(this.#folder, `${kind}-${this.#made}`);
  }
}

/** What the system says of a program that is not there is a riddle to people. */
export function withoutMkfifo(error: unknown): unknown {
  return (error as NodeJS.ErrnoException).code === 'ENOENT'
    ? new HelperFailed('there is no mkfifo here (package coreutils): no stage can start')
    : error;
}

/** Folders of owners that were killed: their names say whose they are. Those of another PID namespace are not ours to judge. */
function removeOrphans(parent: string): void {
  const own = pidNamespace();
  for (const name of readdirSync(parent)) {
    const [, namespace, pid, startTime] = /^\.?penstock-(\d+)-(\d+)-(\d+)-/.exec(name) ?? [];
    if (namespace !== own || pid === undefined || startTime === undefined || isAlive({ pid: Number(pid), startTime }))
      continue;
    try {
      rmSync(join(parent, name), { recursive: true, force: true });
    } catch {
      // Another user's.
    }
  }
}

function memoryFolder(): string {
  try {
    closeSync(openSync(MEMORY, constants.O_RDONLY | constants.O_DIRECTORY));
    rmSync(mkdtempSync(join(MEMORY, 'penstock-')), { recursive: true });
    return MEMORY;
  } catch {
    return tmpdir();
  }
}
