/**
 * What a container's first process and its owner share: pipes and a file in a folder that is mounted into the container, and
 * that nobody else can enter. Once the process has opened them their names go: what lies in it is nobody's to open again.
 *
 * CONTROL-1. The owner holds the writing end of `control` from before the container exists: its end of file is the owner's end.
 * CONTROL-2. `ended` comes with the end of file of `life`, which only the container's first process, and what it started, hold open.
 * CONTROL-3. Closed it does nothing any more, whatever it is told: the numbers that it had are those of other files by then.
 */
import { execFile } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  closeSync,
  constants,
  ftruncateSync,
  mkdirSync,
  openSync,
  rmSync,
  unlinkSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { Socket } from 'node:net';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { OutputSink, StageUser } from '../contract/port.ts';
import { OutputPipes } from '../process/output-pipes.ts';
import { withoutMkfifo } from '../process/scratch.ts';

/** Where the container finds it. */
export const CONTROL_TARGET = '/run/penstock';

const PIPES = ['control', 'life', 'out', 'err'] as const;
/** Of `life`: "up", and "end" with a status. A stage could write there: no more is kept. */
const LIFE_CHARACTERS_MAX = 200;
const run = promisify(execFile);

export class Control {
  readonly folder: string;
  /** Resolves when the first process has everything open. */
  readonly up: Promise<void>;
  /** Resolves when the first process is gone. */
  readonly ended: Promise<void>;
  readonly #controlFd: number;
  readonly #jobFd: number;
  readonly #lifeHolder: number;
  readonly #holders: readonly number[];
  readonly #life: Socket;
  readonly #pipes: OutputPipes;
  #said = '';
  #isUp = false;
  #isClosed = false;
  #onUp: () => void = () => {};

  /** `folder` lies where only the owner can enter. `user`: whom the container's first process runs as, where that is not the owner. */
  static async make(folder: string, user: StageUser | undefined, isShared: boolean): Promise<Control> {
    mkdirSync(folder, { mode: 0o755 });
    try {
      const names = PIPES.map((name) => join(folder, name));
      await run('mkfifo', names, { timeout: 10_000 }).catch((error: unknown) => {
        throw withoutMkfifo(error);
      });
      writeFileSync(join(folder, 'job'), '', { flag: 'wx' });
      for (const name of [...names, join(folder, 'job')]) {
        if (user !== undefined) chownSync(name, user.uid, user.gid);
        // A service may run as any user of its image; the folder above keeps everybody else out.
        chmodSync(name, isShared ? 0o666 : 0o600);
      }
      return new Control(folder);
    } catch (error) {
      rmSync(folder, { recursive: true, force: true });
      throw error;
    }
  }

  private constructor(folder: string) {
    this.folder = folder;
    const opened: number[] = [];
    const open = (name: string, flags: number): number => {
      const fd = openSync(join(folder, name), flags | constants.O_NONBLOCK);
      opened.push(fd);
      return fd;
    };
    try {
      // For both ways: then it never blocks, and never ends while this process lives (CONTROL-1).
      this.#controlFd = open('control', constants.O_RDWR);
      this.#jobFd = open('job', constants.O_RDWR);
      const life = open('life', constants.O_RDONLY);
      // Without a writer a pipe is at its end at once.
      this.#lifeHolder = open('life', constants.O_WRONLY);
      const out = open('out', constants.O_RDONLY);
      const err = open('err', constants.O_RDONLY);
      this.#holders = [open('out', constants.O_WRONLY), open('err', constants.O_WRONLY)];
      this.#pipes = new OutputPipes(out, err);
      this.#life = new Socket({ fd: life, readable: true, writable: false });
    } catch (error) {
      for (const fd of opened) closeSync(fd);
      throw error;
    }
    this.up = new Promise((resolve) => {
      this.#onUp = resolve;
    });
    this.#life.on('error', () => {});
    this.#life.on('data', (data: Buffer) => this.#onLife(data));
    this.ended = new Promise((resolve) => this.#life.once('close', () => resolve()));
  }

  /** What the first process said of the stage's end: undefined where it was killed before it could. */
  get reported(): { readonly isOutOfMemory: boolean } | undefined {
    const [, , killed] = /^end (\d+) (\d+)$/m.exec(this.#said) ?? [];
    return killed === undefined ? undefined : { isOutOfMemory: killed !== '0' };
  }

  attach(sink: OutputSink): void {
    this.#pipes.attach(sink);
  }

  writeScript(name: string, script: string, user: StageUser | undefined): string {
    const path = join(this.folder, name);
    writeFileSync(path, script, { mode: 0o600, flag: 'wx' });
    if (user !== undefined) chownSync(path, user.uid, user.gid);
    return join(CONTROL_TARGET, name);
  }

  /** Lets the first process begin. */
  go(job: Buffer): void {
    for (let at = 0; at < job.length;) at += writeSync(this.#jobFd, job, at, job.length - at, at);
    this.#order('go');
  }

  /** SIGTERM to all, and time for what is left. CONTROL-3. */
  stop(): void {
    if (this.#isClosed) return;
    ftruncateSync(this.#jobFd, 0);
    this.#order('stop');
  }

  /** Only when nothing in the container can write any more. */
  async finish(): Promise<void> {
    await this.#pipes.finish();
  }

  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#pipes.close();
    this.#life.destroy();
    this.#release();
    for (const fd of [this.#controlFd, this.#jobFd, ...this.#holders]) closeSync(fd);
    rmSync(this.folder, { recursive: true, force: true });
  }

  #order(line: string): void {
    try {
      writeSync(this.#controlFd, `${line}\n`);
    } catch {
      // Nobody has read the orders before: it is killed after its grace.
    }
  }

  #onLife(data: Buffer): void {
    if (this.#said.length < LIFE_CHARACTERS_MAX) this.#said += data.toString('latin1');
    if (this.#isUp || !this.#said.includes('\n')) return;
    this.#release();
    for (const name of [...PIPES, 'job']) unlinkSync(join(this.folder, name));
    this.#onUp();
  }

  #release(): void {
    if (this.#isUp) return;
    this.#isUp = true;
    closeSync(this.#lifeHolder);
  }
}
