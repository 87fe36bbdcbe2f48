/**
 * The guard as its owner sees it (P15): a small process that ends the helpers it holds when this process dies, or
 * freezes past its deadline.
 *
 * GUARD-1. A helper is held from the moment `hold` resolves; before that no stage may start in it.
 * GUARD-2. `gone` resolves once, whatever the cause; from then on nothing is held and `hold` rejects.
 * GUARD-3. Guard and owner watch each other: a deadline that the guard does not take in time counts as its end, and it is
 *     killed. Not where the owner stood still meanwhile, and the answer is there.
 */
import { spawn, type ChildProcess } from 'node:child_process';
import type { Duplex } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { GuardGone } from '../contract/errors.ts';
import { hasPipes } from '../system/child-pipes.ts';
import { withoutStrayDescriptors } from '../system/descriptors.ts';
import { identityOf, type ProcessIdentity } from '../system/proc.ts';

const GUARD_SCRIPT = fileURLToPath(new URL('./guard.bash', import.meta.url));
/** For one line; a guard that is silent for longer is frozen or starved, and no guard. */
const ANSWER_MS_MAX = 5_000;

interface Waiting {
  readonly resolve: () => void;
  readonly reject: (error: Error) => void;
  readonly deadline: NodeJS.Timeout;
}

export class Guard {
  readonly identity: ProcessIdentity;
  /** Resolves with a phrase that says why it is gone. */
  readonly gone: Promise<string>;
  readonly #child: ChildProcess;
  readonly #line: Duplex;
  readonly #waiting = new Map<string, Waiting[]>();
  #over = false;
  #deadlineMs = 0;
  #confirmations = 0;
  #received = '';

  constructor() {
    const { file, args } = withoutStrayDescriptors(['bash', GUARD_SCRIPT]);
    // A session of its own: ^C in a terminal ends the owner, and the owner's end is what the guard waits for. One
    // socket for both ways, so that its other end is this process and nothing else.
    this.#child = spawn(file, args, {
      cwd: '/',
      env: { PATH: process.env['PATH'] ?? '/usr/bin:/bin', LC_ALL: 'C' },
      detached: true,
      stdio: ['pipe', 'pipe', 'ignore'],
    });
    if (!hasPipes(this.#child)) throw new GuardGone('there are too many open files to start a guard');
    this.identity = this.#child.pid === undefined ? { pid: 0, startTime: '' } : identityOf(this.#child.pid);
    this.#line = this.#child.stdin as unknown as Duplex;
    this.#line.on('error', () => {});
    this.#child.stdout?.on('data', (data: Buffer) => this.#onData(data));
    this.gone = new Promise<string>((resolve) => {
      this.#child.once('error', (error) => resolve(`it did not start: ${error.message}`));
      this.#child.once('exit', (code, signal) =>
        resolve(signal === null && code === 0 ? 'it fired' : `it ended (${signal ?? code})`),
      );
    }).then((why) => this.#end(why));
  }

  get isGone(): boolean {
    return this.#over;
  }

  /** Resolves when every one of them is held. Rejects with GuardGone. */
  async hold(helpers: readonly ProcessIdentity[]): Promise<void> {
    await Promise.all(helpers.map(({ pid, startTime }) => this.#ask(`+ ${pid} ${startTime}`, `+ ${pid}`)));
  }

  /** Of helpers that are gone, so that the list does not grow. */
  letGo(helpers: readonly ProcessIdentity[]): void {
    if (!this.#over) this.#line.write(helpers.map(({ pid }) => `- ${pid}\n`).join(''));
  }

  /** Until when what the session holds may run, milliseconds of the boot clock; 0 once it is over. */
  get deadlineMs(): number {
    return this.#over ? 0 : this.#deadlineMs;
  }

  /** Milliseconds of the boot clock. Resolves when it is taken, rejects with GuardGone. */
  async setDeadline(bootMs: number): Promise<void> {
    const text = String(Math.floor(bootMs));
    await this.#ask(`= ${text}`, `= ${text}`);
    this.#deadlineMs = Math.max(this.#deadlineMs, bootMs);
  }

  /** Whether it still stands guard: false also while it is firing. */
  async confirm(): Promise<boolean> {
    this.#confirmations += 1;
    const line = `? ${this.#confirmations}`;
    return this.#ask(line, line).then(
      () => true,
      () => false,
    );
  }

  /** Ends everything that it holds, and itself. */
  async fire(): Promise<void> {
    this.#line.end();
    await this.gone;
  }

  #ask(line: string, answer: string): Promise<void> {
    if (this.#over) return Promise.reject(new GuardGone('the guard has fired'));
    return new Promise<void>((resolve, reject) => {
      const deadline = setTimeout(() => setImmediate(() => this.#giveUp(answer, waiting)), ANSWER_MS_MAX);
      const waiting: Waiting = { resolve, reject, deadline };
      const others = this.#waiting.get(answer);
      if (others === undefined) this.#waiting.set(answer, [waiting]);
      else others.push(waiting);
      this.#line.write(`${line}\n`);
    });
  }

  /** GUARD-3. Called when what it said while this process stood still has been heard. */
  #giveUp(answer: string, waiting: Waiting): void {
    if (this.#waiting.get(answer)?.includes(waiting) === true) this.#child.kill('SIGKILL');
  }

  #onData(data: Buffer): void {
    this.#received += data.toString('latin1');
    for (let end = this.#received.indexOf('\n'); end >= 0; end = this.#received.indexOf('\n')) {
      const line = this.#received.slice(0, end);
      this.#received = this.#received.slice(end + 1);
      const refused = line.startsWith('!');
      const answer = refused ? line.replace('!', '+') : line;
      const waiting = this.#waiting.get(answer)?.shift();
      if (this.#waiting.get(answer)?.length === 0) this.#waiting.delete(answer);
      if (waiting === undefined) continue;
      clearTimeout(waiting.deadline);
      if (refused) waiting.reject(new GuardGone(`the guard cannot hold ${line.slice(2)}: it is not there`));
      else waiting.resolve();
    }
  }

  #end(why: string): string {
    this.#over = true;
    for (const { reject, deadline } of [...this.#waiting.values()].flat()) {
      clearTimeout(deadline);
      reject(new GuardGone(`the guard is gone: ${why}`));
    }
    this.#waiting.clear();
    this.#line.destroy();
    return why;
  }
}
