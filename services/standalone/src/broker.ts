/**
 * The embedded broker of `penstock serve`: a nats-server of our own on the loopback interface. It owns the folder
 * `<dataDir>/broker` (configuration, store, log, pid) and the process, for as long as serve lives.
 *
 * EMBEDDED-BROKER-1. One process at a time opens the store: one that survived an earlier serve is ended first, and waited for (P17).
 *     A process is only signalled when number and start time are those that were recorded.
 * EMBEDDED-BROKER-2. Credentials are random at each start of serve and stand in a file of mode 0600, never in an argument.
 * EMBEDDED-BROKER-3. A broker that ends, or does not answer three probes, is started again on the same port with the same credentials.
 *     So is one that still refuses to write when a full disk has room again: its streams never recover by themselves.
 * EMBEDDED-BROKER-4. It dies with serve: by a parent-death signal where there is `setpriv`, else with serve's exit or at the next start.
 * EMBEDDED-BROKER-5. It is in a session of its own: ^C in a terminal reaches serve alone, which ends the broker last.
 */
import { constants } from 'node:fs';
import { access, mkdir, open, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { randomBytes } from 'node:crypto';
import { join, resolve } from 'node:path';
import { type Bus, connectBus } from '@penstock/bus';
import { execa } from 'execa';
import {
  brokerConfiguration,
  brokerMemoryBytes,
  type BrokerRunner,
  freePort,
  storeLimits,
  type StoreLimits,
} from './broker-config.ts';
import { adoptNamelessStore } from './broker-store.ts';
import { readAgain } from './broker-reload.ts';
import { endProcess, identify, type ProcessIdentity } from './process-identity.ts';
import type { Log } from '@penstock/telemetry/log';
import { backoffMs, pauseOrAbort, withoutJitter } from '@penstock/async';
import { machineMemory } from '@penstock/service';

export interface EmbeddedBrokerOptions {
  readonly dataDir: string;
  /** Path of a nats-server 2.14 or newer. */
  readonly binary: string;
  readonly log: Log;
  /** It ended without being told to; it is being started again. Must not throw. */
  readonly onExit?: ((end: BrokerEnd) => void) | undefined;
  /** `always`: every acknowledged message is on disk, at a sixth of the speed. Default: `SERVICE_NATS_SYNC`, else `default`. */
  readonly sync?: 'default' | 'always' | undefined;
  /** Time between two probes, and the time that one may take. Default 2,000. */
  readonly probeMs?: number | undefined;
}

export interface BrokerEnd {
  readonly exitCode: number | undefined;
  readonly signal: string | undefined;
  /** The end of what it wrote to stderr. */
  readonly output: string;
}

export interface EmbeddedBroker extends StoreLimits {
  /** Without credentials. */
  readonly url: string;
  readonly user: string;
  readonly password: string;
  /** Of the present process; -1 between two. */
  readonly pid: number;
  /** Of its WebSocket listener on the loopback interface. */
  readonly fleetPort: number;
  /**
   * Lets these runners in with their public keys, and nobody else any more: who is not among them is cut off. Resolves when it is
   * so; a broker that is being started again reads it by itself. One call at a time.
   */
  setRunners(runners: ReadonlyMap<string, BrokerRunner>): Promise<void>;
  /** SIGTERM, SIGKILL after 5 s; resolves when it is gone. */
  stop(): Promise<void>;
}

/** The store of a million messages is read in about a second; a slow disk may take longer. */
const READY_TIMEOUT_MS = 60_000;
const STOP_GRACE_MS = 5_000;
/** What it acknowledged is safe from a kill; a start that waits long for a frozen process is worse than one that kills it. */
const SURVIVOR_GRACE_MS = 2_000;
const PROBE_MS = 2_000;
const PROBE_FAILURES_MAX = 3;
/** Of what the broker has logged since the last probe; a broker that cannot write says so at every attempt. */
const COMPLAINTS_BYTES_MAX = 64 * 1024;
/** After so many probes without a complaint the disk is not looked at any more. */
const QUIET_PROBES_MAX = 30;
/** Room to be had before it is worth starting the broker again. */
const ROOM_BYTES = 4 * 1024 * 1024;
/** Nobody else restarts this broker, so that the wait needs no jitter. */
const RESTART = { firstMs: 50, maxMs: 5_000, random: withoutJitter };
/** A broker that lived this long starts the backoff anew. */
const STABLE_MS = 10_000;
const PORT_TRIES = 5;
const OUTPUT_CHARACTERS_MAX = 4_000;
const USER = 'penstock';
const SYSTEM_USER = 'system';

/** Throws when it cannot be started at all: the reason stands in the message, with the end of the broker's log. */
export async function startEmbeddedBroker(options: EmbeddedBrokerOptions): Promise<EmbeddedBroker> {
  const folder = resolve(options.dataDir, 'broker');
  await mkdir(join(folder, 'store'), { recursive: true, mode: 0o700 });
  await endSurvivor(join(folder, 'pid'), options.log);
  await adoptNamelessStore(join(folder, 'store'));
  const limits = await storeLimits(join(folder, 'store'), join(folder, 'store-bytes-max'));
  for (let attempt = 1; ; attempt += 1) {
    const supervisor = new Supervisor(folder, [await freePort(), await freePort()], limits, options);
    try {
      await supervisor.start();
      return supervisor;
    } catch (error) {
      await supervisor.stop();
      // Only another process that took the port in between is worth another try.
      if (attempt === PORT_TRIES || !(error as Error).message.includes('address already in use')) throw error;
    }
  }
}

/** EMBEDDED-BROKER-1. */
async function endSurvivor(pidFile: string, log: Log): Promise<void> {
  const recorded = await readFile(pidFile, 'utf8').catch(() => null);
  if (recorded === null) return;
  let identity: ProcessIdentity;
  try {
    identity = JSON.parse(recorded) as ProcessIdentity;
  } catch {
    // Cut off by a crash while it was written: the broker of that moment had just been started, and died with its serve.
    return;
  }
  const present = await identify(identity.pid);
  if (present?.startedAt !== identity.startedAt) return;
  log.warn({ pid: identity.pid }, 'ending the broker of an earlier serve');
  if (!(await endProcess(identity, SURVIVOR_GRACE_MS))) {
    throw new Error(
      `the broker of an earlier serve (process ${identity.pid}) cannot be ended: end it, then start again`,
    );
  }
}

interface Running {
  readonly process: ReturnType<typeof launch>;
  readonly startedAtMs: number;
  output: string;
  ended: boolean;
}

class Supervisor implements EmbeddedBroker {
  readonly url: string;
  readonly user = USER;
  readonly password = randomBytes(24).toString('base64url');
  readonly storeBytesMax: number;
  readonly journalBytesMax: number;
  readonly logsBytesMax: number;
  readonly fleetPort: number;
  readonly #systemPassword = randomBytes(24).toString('base64url');
  readonly #folder: string;
  readonly #port: number;
  readonly #options: EmbeddedBrokerOptions;
  #runners: ReadonlyMap<string, BrokerRunner> = new Map();
  readonly #stopping = new AbortController();
  #running: Running | null = null;
  #supervision: Promise<void> = Promise.resolve();
  #bus: Bus | null = null;
  #probing: Promise<void> = Promise.resolve();

  constructor(
    folder: string,
    [port, fleetPort]: readonly [number, number],
    limits: StoreLimits,
    options: EmbeddedBrokerOptions,
  ) {
    this.fleetPort = fleetPort;
    this.url = `nats://127.0.0.1:${port}`;
    this.storeBytesMax = limits.storeBytesMax;
    this.journalBytesMax = limits.journalBytesMax;
    this.logsBytesMax = limits.logsBytesMax;
    this.#folder = folder;
    this.#port = port;
    this.#options = options;
  }

  get pid(): number {
    return this.#running?.process.pid ?? -1;
  }

  async start(): Promise<void> {
    await this.#writeConfiguration();
    const running = await this.#spawn();
    const connecting = connectBus({
      servers: this.url,
      user: this.user,
      pass: this.password,
      name: 'broker-probe',
      connectTimeoutMs: READY_TIMEOUT_MS,
    });
    const ended = running.process.then(async () => {
      throw new Error(brokerProblem((await this.#lastWords(running)).trim(), this.#options.binary));
    });
    try {
      this.#bus = await Promise.race([connecting, ended]);
    } catch (error) {
      void connecting.then(
        (bus) => bus.close(0),
        () => {},
      );
      throw error;
    }
    ended.catch(() => {}); // from here on the supervision sees its end
    await this.#bus.request('$JS.API.INFO', null, { timeoutMs: READY_TIMEOUT_MS });
    this.#supervision = this.#supervise(running);
    this.#probing = this.#probe();
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await Promise.all([this.#bus?.close(0), this.#probing]);
    const running = this.#running;
    if (running !== null && !running.ended) {
      // Frozen processes take no SIGTERM: execa sends SIGKILL after the grace.
      running.process.kill('SIGTERM');
      await running.process;
    }
    await this.#supervision;
    await Promise.all([
      rm(join(this.#folder, 'pid'), { force: true }),
      rm(join(this.#folder, 'nats.conf'), { force: true }),
      rm(join(this.#folder, 'nats.conf.new'), { force: true }),
    ]);
  }

  async setRunners(runners: ReadonlyMap<string, BrokerRunner>): Promise<void> {
    const before = this.#runners;
    this.#runners = runners;
    await this.#writeConfiguration();
    const running = this.#running;
    // Between two processes: the next one reads what is written.
    if (running === null) return;
    try {
      await readAgain({ servers: this.url, user: SYSTEM_USER, pass: this.#systemPassword });
    } catch (error) {
      // It has ended meanwhile, or is another one already, which has read this.
      if (this.#running !== running || running.ended) return;
      // What it does not take must not keep it from starting again.
      this.#runners = before;
      await this.#writeConfiguration();
      throw error;
    }
  }

  async #writeConfiguration(): Promise<void> {
    const environment = process.env['SERVICE_NATS_SYNC'] === 'always' ? 'always' : 'default';
    const file = join(this.#folder, 'nats.conf');
    const fresh = `${file}.new`;
    // Removed first: the mode of a file that exists would stay.
    await rm(fresh, { force: true });
    const text = brokerConfiguration({
      port: this.#port,
      fleetPort: this.fleetPort,
      user: this.user,
      password: this.password,
      systemUser: SYSTEM_USER,
      systemPassword: this.#systemPassword,
      runners: this.#runners,
      storeDir: join(this.#folder, 'store'),
      storeBytesMax: this.storeBytesMax,
      logFile: join(this.#folder, 'broker.log'),
      sync: this.#options.sync ?? environment,
    });
    await writeFile(fresh, text, { mode: 0o600 });
    // Whole or not at all: a broker that is started again at this moment reads one or the other.
    await rename(fresh, file);
  }

  async #spawn(): Promise<Running> {
    const child = launch([...(await dyingWithUs()), this.#options.binary, '-c', join(this.#folder, 'nats.conf')]);
    const running: Running = { process: child, startedAtMs: performance.now(), output: '', ended: false };
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      running.output = (running.output + text).slice(-OUTPUT_CHARACTERS_MAX);
    });
    void child.then(() => {
      running.ended = true;
    });
    this.#running = running;
    const identity = child.pid === undefined ? null : await identify(child.pid);
    if (identity === null) return running;
    // A full disk must not keep the broker down: it frees space as well as it takes it.
    await writeFile(join(this.#folder, 'pid'), JSON.stringify(identity), { mode: 0o600 }).catch((error: unknown) => {
      this.#options.log.error({ err: error }, "the broker's process number could not be recorded");
    });
    return running;
  }

  /** EMBEDDED-BROKER-3. */
  async #supervise(first: Running): Promise<void> {
    const { signal } = this.#stopping;
    let running = first;
    for (let failures = 1; ; failures += 1) {
      const result = await running.process;
      this.#running = null;
      if (signal.aborted) return;
      const end: BrokerEnd = {
        exitCode: result.exitCode,
        signal: result.signal,
        output: await this.#lastWords(running),
      };
      this.#options.log.error({ ...end }, 'the broker ended, starting it again');
      this.#options.onExit?.(end);
      if (performance.now() - running.startedAtMs >= STABLE_MS) failures = 1;
      await pauseOrAbort(backoffMs(failures, RESTART), signal);
      if (signal.aborted) return;
      running = await this.#spawn();
      if (signal.aborted) running.process.kill('SIGTERM');
    }
  }

  /** EMBEDDED-BROKER-3: the process lives, and JetStream does not answer (a full disk, a deadlock, a freeze). */
  async #probe(): Promise<void> {
    const { signal } = this.#stopping;
    const probeMs = this.#options.probeMs ?? PROBE_MS;
    let failures = 0;
    let quiet = QUIET_PROBES_MAX;
    let roomBefore = false;
    const complaints = new Complaints(join(this.#folder, 'broker.log'));
    // It takes connections once its store is read.
    let ready: Running | null = this.#running;
    this.#bus?.events.on('reconnected', () => {
      ready = this.#running;
    });
    while (!signal.aborted) {
      await pauseOrAbort(probeMs, signal);
      const running = this.#running;
      if (signal.aborted || running === null) continue;
      const alive = await this.#bus?.request('$JS.API.INFO', null, { timeoutMs: probeMs }).then(
        () => true,
        () => false,
      );
      const complained = await complaints.ofNoSpace().catch(() => false);
      quiet = complained ? 0 : quiet + 1;
      const room = quiet < QUIET_PROBES_MAX && (await hasRoom(this.#folder));
      const stuck = alive && complained && roomBefore && room;
      roomBefore = room;
      if (alive && !stuck) {
        failures = 0;
        continue;
      }
      if (stuck) failures = PROBE_FAILURES_MAX;
      else if (ready !== running && performance.now() - running.startedAtMs < READY_TIMEOUT_MS) continue;
      failures += 1;
      if (failures < PROBE_FAILURES_MAX || signal.aborted) continue;
      failures = 0;
      this.#options.log.error(
        { pid: this.pid },
        stuck
          ? 'the broker does not write although there is room again, ending it'
          : 'the broker does not answer, ending it',
      );
      running.process.kill('SIGKILL');
    }
  }

  async #lastWords(running: Running): Promise<string> {
    const log = await readFile(join(this.#folder, 'broker.log'), 'utf8').catch(() => '');
    const complaints = log
      .split('\n')
      .filter((line) => /\[(ERR|FTL)\]/.test(line))
      .slice(-3);
    return [running.output, ...complaints].join('\n').slice(-OUTPUT_CHARACTERS_MAX);
  }
}

/** What the broker has logged since it was last asked about. */
class Complaints {
  readonly #file: string;
  #seenBytes: number | null = null;

  constructor(file: string) {
    this.#file = file;
  }

  async ofNoSpace(): Promise<boolean> {
    const log = await open(this.#file).catch(() => null);
    if (log === null) return false;
    try {
      const { size } = await log.stat();
      const from = Math.max(this.#seenBytes ?? size, size - COMPLAINTS_BYTES_MAX, 0);
      this.#seenBytes = size;
      if (from >= size) return false;
      const { buffer, bytesRead } = await log.read(Buffer.alloc(size - from), 0, size - from, from);
      return buffer.toString('latin1', 0, bytesRead).includes('no space left on device');
    } finally {
      await log.close();
    }
  }
}

/** Tried, since quotas and reserved blocks are in no figure. */
async function hasRoom(folder: string): Promise<boolean> {
  const file = join(folder, 'room');
  try {
    await writeFile(file, Buffer.alloc(ROOM_BYTES));
    return true;
  } catch {
    return false;
  } finally {
    await rm(file, { force: true }).catch(() => {});
  }
}

/** Without our environment, which may hold secrets. */
function launch([file = '', ...args]: readonly string[]) {
  return execa(file, args, {
    stdin: 'ignore',
    stdout: 'ignore',
    stderr: 'pipe',
    buffer: false,
    reject: false,
    detached: true,
    forceKillAfterDelay: STOP_GRACE_MS,
    extendEnv: false,
    env: {
      PATH: process.env['PATH'] ?? '',
      GOMEMLIMIT: process.env['GOMEMLIMIT'] ?? String(brokerMemoryBytes(machineMemory())),
    },
  });
}

/** EMBEDDED-BROKER-4. SIGTERM, so that it closes its store in order; the next start waits for that. */
async function dyingWithUs(): Promise<readonly string[]> {
  for (const setpriv of ['/usr/bin/setpriv', '/bin/setpriv']) {
    const found = await access(setpriv, constants.X_OK).then(
      () => true,
      () => false,
    );
    if (found) return [setpriv, '--pdeathsig', 'TERM', '--'];
  }
  return [];
}

/** `setpriv` is what says that there is no such program. */
function brokerProblem(lastWords: string, binary: string): string {
  const refusal = /failed to execute .*?: (.*)/u.exec(lastWords)?.[1];
  return refusal === undefined
    ? `the broker ended while it started: ${lastWords}`
    : `the broker's program ${binary} cannot be started (${refusal.toLowerCase()}): SERVICE_NATS_SERVER names it, and without that variable 'npm start' brings its own`;
}
