/** podman's API, served by a process of our own to us alone: on a socket in a folder that nobody else can enter. */
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { connect } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { EngineFailed } from './errors.ts';

const UP_MS_MAX = 20_000;
const POLL_MS = 5;
const COMPLAINT_CHARACTERS_MAX = 1_000;

export class PodmanService {
  readonly socketPath: string;
  /** Rejects with EngineFailed. */
  readonly ready: Promise<void>;
  readonly #child: ChildProcess;
  #complaint = '';
  #isOver = false;

  /** `command`: podman with its global flags. */
  constructor(command: readonly string[], socketPath: string) {
    this.socketPath = socketPath;
    // It ends with its owner, in whatever way that ends.
    this.#child = spawn(
      'setpriv',
      ['--pdeathsig', 'KILL', '--', ...command, 'system', 'service', '--time=0', `unix://${socketPath}`],
      {
        cwd: '/',
        detached: true,
        stdio: ['ignore', 'ignore', 'pipe'],
      },
    );
    this.#child.stderr?.on('data', (data: Buffer) => {
      this.#complaint = (this.#complaint + data.toString('utf8')).slice(-COMPLAINT_CHARACTERS_MAX);
    });
    this.#child.once('error', (error) => {
      this.#complaint = error.message;
      this.#isOver = true;
    });
    this.#child.once('exit', () => {
      this.#isOver = true;
    });
    this.ready = this.#untilReady();
    this.ready.catch(() => {});
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  async close(): Promise<void> {
    if (this.#isOver || this.#child.pid === undefined) return;
    const gone = once(this.#child, 'exit');
    this.#child.kill('SIGKILL');
    await gone;
  }

  async #untilReady(): Promise<void> {
    const deadline = performance.now() + UP_MS_MAX;
    while (!(await answers(this.socketPath))) {
      if (this.#isOver) throw new EngineFailed(`podman does not serve its API: ${this.#complaint.trim()}`, 0);
      if (performance.now() > deadline) {
        this.#child.kill('SIGKILL');
        throw new EngineFailed(`podman did not serve its API within ${UP_MS_MAX} ms`, 0);
      }
      await delay(POLL_MS);
    }
  }
}

function answers(socketPath: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(socketPath);
    socket.once('connect', () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', () => resolve(false));
  });
}
