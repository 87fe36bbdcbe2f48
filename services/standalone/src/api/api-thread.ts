/**
 * The API in a thread of its own: no request, query, body or file of a stranger holds up the thread in which leases are
 * renewed, grants handed out and results committed (docs/adr/0013-two-threads.md). It owns the thread, and starts it again
 * where it ends: its heap has a bound of its own, so what is too much for it costs the requests of that moment and nothing else.
 * One whose loop stands still is ended, and so started again.
 */
import { MessageChannel, type MessagePort, Worker } from 'node:worker_threads';
import { totalmem } from 'node:os';
import { backoffMs, pauseOrAbort, unlessAborted, within } from '@penstock/async';
import { createBirpc, type BirpcReturn } from 'birpc';
import type { MirrorCache } from '@penstock/git';
import { Unavailable } from '@penstock/errors';
import { valueOf } from '@penstock/service';
import type { Log } from '@penstock/telemetry/log';
import type { MetricsSnapshot } from '@penstock/telemetry/metrics';
import { currentRequest } from '@penstock/telemetry/request';
import type { FleetDoor } from '../fleet-door.ts';
import type { ApiCalls } from './api-worker.ts';
import { givenInQuestion } from './given-away.ts';
import { doorCalls } from './door-calls.ts';
import { CALL_MS_MAX, mirrorCalls, type EngineCalls, type MirrorCalls } from './mirror-calls.ts';
import { adoptFiles } from './read-files.ts';
import type { BusAddress } from '../bus-address.ts';
import type { ApiOptions } from './start-api.ts';

const WORKER = new URL('./api-worker.ts', import.meta.url);
const MEBIBYTE = 1024 * 1024;
const HEAP_MIB_MIN = 512;
const HEAP_MIB_MAX = 2_048;
/** Room for what has just been made, as V8 counts: three times 8 MiB. With twice that, a twentieth more pushes are taken in (docs/adr/0075-memory-of-a-server.md). */
const YOUNG_MIB_MAX = 24;
const RESTART = { firstMs: 100, maxMs: 5_000 };
/** Closing waits for answers that are under way. */
const CLOSE_MS_MAX = 30_000;
/** A thread whose store builds an index ends when that is there: it is left to the end of the process. */
const END_MS_MAX = 5_000;
/** Counted in looks and not by a clock: after a process has been frozen as a whole, one look is late and not twenty. */
const WATCH = { everyMs: 1_000, looksMax: 20 };

export interface ApiThreadOptions {
  /** Another program for the thread, in tests. */
  readonly worker?: URL | undefined;
  /** How often it is looked whether the thread answers, and after how many looks in vain it is ended. */
  readonly watch?: typeof WATCH | undefined;
}

/** What the API asks of the engine beside the bus. */
export interface ApiEngine {
  readonly mirrors: MirrorCache;
  /** Undefined: there is no fleet. */
  readonly door?: Pick<FleetDoor, 'admit' | 'shut' | 'list'> | undefined;
  figures(): Promise<MetricsSnapshot>;
  /** Takes its end of the line between the two buses. */
  link(port: MessagePort): void;
}

interface Running {
  readonly worker: Worker;
  readonly line: MessagePort;
  readonly calls: BirpcReturn<ApiCalls, EngineCalls>;
  /** Resolves with the cause when the thread is gone. */
  readonly gone: Promise<Error>;
  /** Aborts then, with what is told to who has asked it something. */
  readonly over: AbortSignal;
}

export class ApiThread {
  readonly #log: Log;
  readonly #worker: URL;
  readonly #watch: typeof WATCH;
  readonly #closing = new AbortController();
  #running: Running;
  #closed: Promise<void> | null = null;
  #supervision: Promise<void> = Promise.resolve();
  #mirrors: MirrorCalls | null = null;
  #figures: EngineCalls['figures'] | null = null;
  #door: ApiEngine['door'];
  #link: ApiEngine['link'] = () => {};
  #isStopping = false;

  /** Begins to load at once; nothing is listened on before `start`. */
  constructor(log: Log, options: ApiThreadOptions = {}) {
    this.#log = log;
    this.#worker = options.worker ?? WORKER;
    this.#watch = options.watch ?? WATCH;
    this.#running = this.#launch();
  }

  /** Resolves with the address when it listens. Rejects with the cause, and then has to be closed. */
  async start(options: ApiOptions, busAddress: BusAddress, engine: ApiEngine): Promise<string> {
    this.#mirrors = mirrorCalls(engine.mirrors);
    this.#figures = () => engine.figures();
    this.#door = engine.door;
    this.#link = (port) => engine.link(port);
    const { url, port } = await this.#startIn(this.#running, options, busAddress);
    void this.#endIfSilent(this.#running);
    const again = { ...options, listen: { ...options.listen, port } };
    this.#supervision = this.#supervise(again, busAddress);
    return url;
  }

  /** `/ready` says so; everything else goes on until it is closed. */
  announceStop(): void {
    this.#isStopping = true;
    this.#running.calls.announceStop().catch((error: unknown) => {
      this.#log.warn({ err: error }, 'the API could not be told that the server stops');
    });
  }

  /** What the runner asks of those who keep bytes, which live in that thread. */
  async keep(runner: string, verb: string, body: unknown): Promise<unknown> {
    const { calls, over } = this.#running;
    over.throwIfAborted();
    // The next one has not heard of it. A promise of its end would keep something of each call for as long as the thread lives.
    return valueOf(await unlessAborted(calls.keep(runner, verb, body, currentRequest()), over));
  }

  close(): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  async #close(): Promise<void> {
    this.#closing.abort();
    const { worker, calls, gone } = this.#running;
    try {
      await within(CLOSE_MS_MAX, Promise.race([calls.close(), gone]), () => {
        throw new Error('the API did not answer');
      });
    } catch (error) {
      this.#log.error({ err: error }, 'the API did not stop cleanly');
    }
    await within(END_MS_MAX, Promise.all([worker.terminate(), this.#supervision]), () => {});
  }

  async #supervise(options: ApiOptions, busAddress: BusAddress): Promise<void> {
    const { signal } = this.#closing;
    for (let failures = 1; ; failures += 1) {
      const cause = await this.#running.gone;
      if (signal.aborted) return;
      this.#log.error({ err: cause }, 'the thread of the API ended; it is being started again');
      await pauseOrAbort(backoffMs(failures, RESTART), signal);
      if (signal.aborted) return;
      this.#running = this.#launch();
      try {
        await this.#startIn(this.#running, options, busAddress);
        if (this.#isStopping) this.announceStop();
        void this.#endIfSilent(this.#running);
        failures = 0;
      } catch (error) {
        this.#log.error({ err: error }, 'the API could not be started');
        await this.#running.worker.terminate();
      }
    }
  }

  /** Until the thread is gone. */
  async #endIfSilent({ worker, calls, over }: Running): Promise<void> {
    const { signal } = this.#closing;
    const { everyMs, looksMax } = this.#watch;
    const either = AbortSignal.any([signal, over]);
    while (!either.aborted) {
      let answered = false;
      calls.ping().then(
        () => (answered = true),
        () => {},
      );
      for (let looks = 0; !answered && !either.aborted; looks += 1) {
        if (looks === looksMax) {
          this.#log.error(
            { seconds: (everyMs * looksMax) / 1_000 },
            'the thread of the API does not answer; it is ended',
          );
          await worker.terminate();
          return;
        }
        await pauseOrAbort(everyMs, either);
      }
      await pauseOrAbort(everyMs, either);
    }
  }

  async #startIn({ line, calls, gone }: Running, options: ApiOptions, busAddress: BusAddress) {
    adoptFiles(line);
    this.#link(line);
    return await Promise.race([
      calls.start(options, busAddress),
      gone.then((cause) => {
        throw cause;
      }),
    ]);
  }

  #launch(): Running {
    const { port1: line, port2 } = new MessageChannel();
    const worker = new Worker(this.#worker, {
      resourceLimits: { maxOldGenerationSizeMb: heapMib(), maxYoungGenerationSizeMb: YOUNG_MIB_MAX },
      workerData: port2,
      transferList: [port2],
    });
    const calls = createBirpc<ApiCalls, EngineCalls>(this.#answers(), {
      post: (message) => worker.postMessage(message, givenInQuestion(message)),
      on: (handle) => worker.on('message', handle),
      timeout: CALL_MS_MAX,
    });
    const gone = new Promise<Error>((resolve) => {
      worker.once('error', (error) => resolve(error instanceof Error ? error : new Error(String(error))));
      worker.once('exit', (code) => resolve(new Error(`it exited with ${code}`)));
    });
    const over = new AbortController();
    void gone.then((cause) => over.abort(new Unavailable('The thread of the API has ended.', { cause })));
    return { worker, line, calls, gone, over: over.signal };
  }

  #answers(): EngineCalls {
    const mirrors = (): MirrorCalls => {
      if (this.#mirrors === null) throw new Error('the mirrors are asked for before the start');
      return this.#mirrors;
    };
    return {
      ...doorCalls(() => this.#door),
      figures: async () => (await this.#figures?.()) ?? [],
      fetch: (address) => mirrors().fetch(address),
      readFile: (address, paths, bytesMax) => mirrors().readFile(address, paths, bytesMax),
      message: (address) => mirrors().message(address),
      changedPaths: (address, ref, branch) => mirrors().changedPaths(address, ref, branch),
      findRef: (request) => mirrors().findRef(request),
    };
  }
}

/** An eighth of the machine's memory, within bounds. */
function heapMib(): number {
  return Math.round(Math.min(HEAP_MIB_MAX, Math.max(HEAP_MIB_MIN, totalmem() / MEBIBYTE / 8)));
}
