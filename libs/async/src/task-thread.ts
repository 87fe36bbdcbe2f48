/**
 * A thread for work that keeps its caller's thread from everything else: one task after the other, each answered.
 *
 * TASKTHREAD-1 Every task settles: by its answer, by its failure, by its deadline, or by the end of the thread. A thread that is late
 *     is ended, with what waits behind that task, and so is one whose task is given up; the next task starts another one.
 * TASKTHREAD-2 The thread is started by the first task, ends when it has had none for a while, and keeps the process alive only
 *     while it has some.
 * TASKTHREAD-3 More than `tasksMax` are refused at once.
 */
import { isMainThread, parentPort, Worker } from 'node:worker_threads';

export interface TaskThreadOptions {
  /** It calls `answerTasks`. */
  readonly program: URL;
  readonly name: string;
  /** For one task, from when it is begun. */
  readonly taskMsMax: number;
  readonly tasksMax: number;
  readonly idleMsMax?: number | undefined;
}

interface Failure {
  readonly message: string;
  /** As a failed call to the system has it. */
  readonly code?: string | undefined;
}

type Reply<Answer> = { readonly answer: Answer } | { readonly failure: Failure };

interface Waiting<Answer> {
  readonly resolve: (answer: Answer) => void;
  readonly reject: (error: Error) => void;
}

const IDLE_MS_MAX = 30_000;
/** A task is small, and what it makes is gone with its answer. */
const YOUNG_MB_MAX = 12;

export class TaskThread<Task, Answer> {
  readonly #options: TaskThreadOptions;
  /** In the order of asking, which is that of answering. */
  #waiting: Waiting<Answer>[] = [];
  #worker: Worker | undefined;
  #timer: NodeJS.Timeout | undefined;
  #isClosed = false;

  constructor(options: TaskThreadOptions) {
    this.#options = options;
  }

  /** Rejects as the work does, with its message and code. `giveUp` is for a thread that has one task at a time: it ends with it. */
  async ask(task: Task, giveUp?: AbortSignal): Promise<Answer> {
    const { name, tasksMax } = this.#options;
    giveUp?.throwIfAborted();
    if (this.#isClosed) throw new Error(`the thread '${name}' is closed`);
    if (this.#waiting.length >= tasksMax) throw new Error(`the thread '${name}' has too much to do`);
    const { promise, resolve, reject } = Promise.withResolvers<Answer>();
    const worker = (this.#worker ??= this.#start());
    this.#waiting.push({ resolve, reject });
    if (this.#waiting.length === 1) this.#await();
    worker.postMessage(task);
    const end = (): void => void this.#end(giveUp?.reason);
    giveUp?.addEventListener('abort', end, { once: true });
    try {
      return await promise;
    } finally {
      giveUp?.removeEventListener('abort', end);
    }
  }

  /** What is under way rejects. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#end(new Error(`the thread '${this.#options.name}' was closed`));
  }

  #start(): Worker {
    const { program, name } = this.#options;
    const worker = new Worker(program, {
      name,
      execArgv: [],
      resourceLimits: { maxYoungGenerationSizeMb: YOUNG_MB_MAX },
    });
    const ended = (error: Error): void => {
      if (this.#worker === worker) void this.#end(error);
    };
    worker.on('message', (reply: Reply<Answer>) => {
      if (this.#worker === worker) this.#settle(reply);
    });
    worker.on('error', (cause) => ended(new Error(`the thread '${name}' failed`, { cause })));
    worker.on('exit', () => ended(new Error(`the thread '${name}' ended`)));
    return worker;
  }

  #settle(reply: Reply<Answer>): void {
    const first = this.#waiting.shift();
    this.#await();
    if ('answer' in reply) return first?.resolve(reply.answer);
    const { message, code } = reply.failure;
    first?.reject(Object.assign(new Error(message), code === undefined ? {} : { code }));
  }

  /** An answer, or the end of a thread without work. */
  #await(): void {
    clearTimeout(this.#timer);
    const { name, taskMsMax, idleMsMax = IDLE_MS_MAX } = this.#options;
    const isIdle = this.#waiting.length === 0;
    const late = new Error(`the thread '${name}' did not answer in time`);
    this.#timer = setTimeout(() => void this.#end(late), isIdle ? idleMsMax : taskMsMax);
    if (isIdle) {
      this.#timer.unref();
      this.#worker?.unref();
    } else {
      this.#worker?.ref();
    }
  }

  async #end(error: Error): Promise<void> {
    clearTimeout(this.#timer);
    const worker = this.#worker;
    this.#worker = undefined;
    for (const { reject } of this.#waiting.splice(0)) reject(error);
    await worker?.terminate();
  }
}

/** In the thread. */
export function answerTasks<Task, Answer>(work: (task: Task) => Answer): void {
  if (isMainThread) throw new Error('tasks are answered in a thread of their own');
  const answerOf = (task: Task): Reply<Answer> => {
    try {
      return { answer: work(task) };
    } catch (error) {
      const { message, code } = error as NodeJS.ErrnoException;
      return { failure: { message, code } };
    }
  };
  parentPort?.on('message', (task: Task) => parentPort?.postMessage(answerOf(task)));
}
