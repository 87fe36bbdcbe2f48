/**
 * Objects of one repository, by one git that stays: asking it costs a turn through two pipes, and not a process.
 *
 * OBJECTS-1. Answers come in the order of the questions. One that does not come in time, or is none, ends the process and every
 *     question under way; the next question starts another one.
 * OBJECTS-2. Nothing is read of an object that is larger than the asker takes.
 * OBJECTS-3. It ends with its owner (end of its input), when nobody has asked for a while, and by `close`.
 */
import { spawn, type ChildProcessByStdio } from 'node:child_process';
import type { Readable, Writable } from 'node:stream';
import { cleanEnvironment } from './git-command.ts';

export interface ObjectInfo {
  readonly id: string;
  readonly type: string;
  readonly size: number;
}

type Git = ChildProcessByStdio<Writable, Readable, null>;
type Answer = { readonly info: ObjectInfo; readonly content: Buffer } | null;

interface Question {
  readonly wantsContent: boolean;
  readonly resolve: (answer: Answer) => void;
  readonly reject: (error: Error) => void;
}

const ANSWER_MS_MAX = 30_000;
const IDLE_MS_MAX = 10_000;
const ID_OR_NAME = /^[\w/^{}]+$/u;

export class Objects {
  readonly #gitFolder: string;
  #git: Git | null = null;
  #questions: Question[] = [];
  #received: Buffer[] = [];
  #receivedBytes = 0;
  /** Of the answer that is being read: how many bytes it takes with its content; 0 before its first line is there. */
  #wanted = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(gitFolder: string) {
    this.#gitFolder = gitFolder;
  }

  get isBusy(): boolean {
    return this.#questions.length > 0;
  }

  /** Null for what is not there. */
  async info(name: string): Promise<ObjectInfo | null> {
    return (await this.#ask('info', name))?.info ?? null;
  }

  /** Of an object whose size is known to be one that can be taken. */
  async content({ id }: ObjectInfo): Promise<Buffer> {
    const answer = await this.#ask('contents', id);
    if (answer === null) throw new Error(`the object ${id} is missing`);
    return answer.content;
  }

  close(): void {
    this.#end(new Error('the reading of objects was ended'));
  }

  #ask(command: 'info' | 'contents', name: string): Promise<Answer> {
    if (!ID_OR_NAME.test(name)) return Promise.reject(new Error('an object is asked for by its id'));
    const git = (this.#git ??= this.#start());
    return new Promise((resolve, reject) => {
      this.#questions.push({ wantsContent: command === 'contents', resolve, reject });
      if (this.#questions.length === 1) this.#await();
      git.stdin.write(`${command} ${name}\n`);
    });
  }

  #start(): Git {
    const git = spawn('git', [`--git-dir=${this.#gitFolder}`, 'cat-file', '--batch-command'], {
      cwd: this.#gitFolder,
      env: cleanEnvironment(this.#gitFolder),
      stdio: ['pipe', 'pipe', 'ignore'],
      detached: true,
    });
    const end = (why: string) => (): void => {
      if (this.#git === git) this.#end(new Error(why));
    };
    git.once('error', end('git could not be started'));
    git.once('exit', end('git has ended'));
    git.stdin.on('error', end('git takes no more questions'));
    git.stdout.on('data', (bytes: Buffer) => {
      if (this.#git === git) this.#onData(bytes);
    });
    return git;
  }

  #onData(bytes: Buffer): void {
    this.#received.push(bytes);
    this.#receivedBytes += bytes.length;
    if (this.#receivedBytes < this.#wanted) return;
    let rest = this.#received.length === 1 ? bytes : Buffer.concat(this.#received);
    for (let [question] = this.#questions; question !== undefined; [question] = this.#questions) {
      const lineEnd = rest.indexOf(10);
      if (lineEnd === -1) break;
      const line = rest.toString('latin1', 0, lineEnd);
      const info = infoOf(line);
      if (info === undefined) return this.#end(new Error('git answers with something else'));
      const size = info !== null && question.wantsContent ? info.size + 1 : 0;
      this.#wanted = lineEnd + 1 + size;
      if (rest.length < this.#wanted) break;
      this.#questions.shift();
      // A copy: what is kept of it must not keep what came with it.
      const content = Buffer.from(rest.subarray(lineEnd + 1, lineEnd + 1 + Math.max(0, size - 1)));
      question.resolve(info === null ? null : { info, content });
      rest = rest.subarray(this.#wanted);
      this.#wanted = 0;
    }
    this.#received = rest.length === 0 ? [] : [rest];
    this.#receivedBytes = rest.length;
    this.#await();
  }

  /** An answer, or the end of an idle git. */
  #await(): void {
    clearTimeout(this.#timer);
    const isIdle = this.#questions.length === 0;
    this.#timer = setTimeout(() => this.#end(new Error('git does not answer')), isIdle ? IDLE_MS_MAX : ANSWER_MS_MAX);
    if (isIdle) this.#timer.unref();
  }

  #end(error: Error): void {
    clearTimeout(this.#timer);
    const git = this.#git;
    this.#git = null;
    this.#received = [];
    this.#receivedBytes = 0;
    this.#wanted = 0;
    for (const { reject } of this.#questions.splice(0)) reject(error);
    git?.kill('SIGKILL');
  }
}

/** Null: missing. Undefined: no answer of git's. */
function infoOf(line: string): ObjectInfo | null | undefined {
  const [, id, type, size] = /^([0-9a-f]{40,64}) (\w+) (\d+)$/u.exec(line) ?? [];
  if (id !== undefined && type !== undefined && size !== undefined) return { id, type, size: Number(size) };
  return line.endsWith(' missing') ? null : undefined;
}

/** Of several repositories, at most `READERS_MAX` processes: who was asked longest ago makes room. */
export class ObjectReaders {
  readonly #readers = new Map<string, Objects>();

  of(gitFolder: string): Objects {
    const reader = this.#readers.get(gitFolder) ?? new Objects(gitFolder);
    this.#readers.delete(gitFolder);
    this.#readers.set(gitFolder, reader);
    for (const [oldest, each] of this.#readers) {
      if (this.#readers.size <= READERS_MAX) break;
      if (each.isBusy) continue;
      this.close(oldest);
    }
    return reader;
  }

  /** The next question finds what is at this path by then. */
  close(gitFolder: string): void {
    this.#readers.get(gitFolder)?.close();
    this.#readers.delete(gitFolder);
  }

  closeAll(): void {
    for (const gitFolder of this.#readers.keys()) this.close(gitFolder);
  }
}

const READERS_MAX = 16;
