/**
 * One helper process as its owner sees it: it is started, becomes ready, runs one stage at a time and is killed.
 *
 * It owns the helper's process, its two output pipes, its control line and its job file. It knows no keys and no pool.
 *
 * HELPER-1. A stage's ending is reported only when the helper has reported that nothing else is left in its namespace and both
 *     pipes have been read empty, or when the namespace itself is gone.
 * HELPER-2. A stage that is stopped before its helper has read the job finds it empty: it never starts.
 * HELPER-3. What ends the namespace is SIGKILL to its PID 1; the launcher then exits by itself, and its exit is the proof.
 * HELPER-4. A stage that is prepared has run no line of its own until `run`: its process waits for a word, and any other ends it.
 * HELPER-5. Nobody reads an order but the process that is for it. Where the forked process reads it (`forksAhead`), one that a signal has ended may
 *     not have read its own, so after a status of a signal such a helper runs nothing any more; nor after a stop, whose signal may have met
 *     the next process of a stage that had just ended. Another helper reads all orders itself, forks nothing without one, and serves on.
 */
import { spawn, type ChildProcess } from 'node:child_process';
import { closeSync, fchownSync, ftruncateSync, writeFileSync, writeSync } from 'node:fs';
import { constants } from 'node:os';
import type { Duplex } from 'node:stream';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { HelperFailed } from '../contract/errors.ts';
import type { ControlGroup, GroupCounts } from '../limits/control-groups.ts';
import type { OutputSink, StageExit, StageUser, StopReason } from '../contract/port.ts';
import { GO } from './job.ts';
import type { Isolation, Launch } from './launch.ts';
import { OutputPipes } from './output-pipes.ts';
import { hasPipes } from '../system/child-pipes.ts';
import { MEMORY } from '../system/memory.ts';
import {
  descendantsOf,
  identityOf,
  initBelow,
  isAlive,
  membersOf,
  type ProcessIdentity,
  signalProcess,
} from '../system/proc.ts';
import type { PipeEnds, Scratch } from './scratch.ts';
import { takeOver } from './take-over.ts';
import type { View } from './view.ts';

/** What Node, shells and `unshare` say where the machine has no process or no memory left for one. */
const IS_SHORT = /\bE(?:AGAIN|NOMEM)\b|Cannot fork|Resource temporarily unavailable|Cannot allocate memory/;
/** Generous: a loaded machine is slow, and a helper that hangs is of no use to anyone. */
const READY_MS_MAX = 20_000;
/** Of what a helper says when it cannot start. */
const COMPLAINT_CHARACTERS_MAX = 2_000;
/** Where helpers and what starts them find their programs. */
export const HELPER_PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';
const GONE_POLL_MS = 5;
/** What slirp4netns writes. */
const STACK_IS_UP = '1';
/** Node fires a longer timer at once. */
const TIMER_MS_MAX = 2 ** 31 - 1;

export interface StageTimes {
  readonly timeoutMs: number;
  readonly graceMs: number;
}

interface RunningStage {
  readonly sink: OutputSink;
  readonly graceMs: number;
  readonly resolve: (exit: StageExit) => void;
  readonly timeout: NodeJS.Timeout;
  stopping: StopReason | null;
  kill: NodeJS.Timeout | undefined;
  /** Reported by a helper that is ended for the proof that nothing is left. */
  reported: StageExit | null;
  /** Its last output is being taken. */
  ending: Promise<void> | undefined;
}

export class Helper {
  readonly isolation: Isolation;
  readonly launch: Launch;
  /** Rejects with HelperFailed. */
  readonly ready: Promise<void>;
  /** Resolves when none of its processes is left. */
  readonly gone: Promise<void>;
  /** The launcher and, in a namespace, its PID 1: killing either ends all. Known once it is ready. */
  identities: readonly ProcessIdentity[] = [];
  /** False once it must not be given another stage. */
  usable = true;
  /** What bounds and counts its processes, where the machine has that. It goes with the helper. */
  group: ControlGroup | null = null;
  /** As its group had counted when its last stage ended. */
  counts: GroupCounts | undefined;
  /** What the group is set to. */
  memoryBytes: number | undefined;
  cores: number | undefined;
  /** What its stages see; null before the first binding. */
  view: View | null = null;
  readonly #child: ChildProcess;
  readonly #control: Duplex;
  /** To the launcher, where it mounts what a run sees. */
  readonly #orders: Duplex | null;
  readonly #tableFd: number | null;
  readonly #jobFd: number;
  readonly #jobPath: string | null;
  readonly #scratch: Scratch;
  readonly #pipes: OutputPipes;
  /** What has to come up before it is ready. */
  readonly #awaited: Set<string>;
  #givenTo: number | undefined;
  /** Of the file of the job. */
  #jobBytes = 0;
  #stage: RunningStage | null = null;
  #received = '';
  #prepared: Buffer | null = null;
  #onDiscarded: (() => void) | null = null;
  #complaint = '';
  #onReady: () => void = () => {};
  #onFailed: (error: HelperFailed) => void = () => {};
  #onBound: ((isBound: boolean) => void) | null = null;

  constructor(launch: Launch, scratch: Scratch) {
    this.launch = launch;
    this.isolation = launch.isolation;
    this.#scratch = scratch;
    this.#awaited = new Set(launch.hasStack === true ? ['ready', 'net'] : ['ready']);
    const { child, job, tableFd, stdoutFd, stderrFd } = begin(launch, scratch);
    this.#jobFd = job.fd;
    this.#jobPath = job.path;
    this.#tableFd = tableFd;
    this.#child = child;
    this.#pipes = new OutputPipes(stdoutFd, stderrFd);
    this.#control = this.#child.stdio[3] as Duplex;
    this.#control.on('data', (data: Buffer) => this.#onControl(data));
    this.#control.on('error', () => {});
    this.#orders = launch.mounts === undefined ? null : (this.#child.stdio.at(7) as unknown as Duplex);
    this.#orders?.on('data', (data: Buffer) => this.#onAnswer(data.toString('latin1')));
    this.#orders?.on('error', () => {});

    this.#child.stderr?.on('data', (data: Buffer) => this.#onComplaint(data));
    const deadline = setTimeout(
      () => this.#onFailed(new HelperFailed(`a helper was not ready within ${READY_MS_MAX} ms`, { isPassing: true })),
      READY_MS_MAX,
    );
    this.ready = new Promise<void>((resolve, reject) => {
      this.#onReady = resolve;
      this.#onFailed = reject;
    }).finally(() => clearTimeout(deadline));
    this.ready.catch(() => this.kill());
    this.gone = this.#untilGone();
  }

  /** Where its owner reaches what its stages find at this path, in memory. */
  inMemory(path: string): string {
    const { bases } = this.launch;
    if (bases === undefined || this.#child.pid === undefined) return path;
    for (const [seen, base] of [[MEMORY, bases.shm] as const, ['/tmp', bases.tmp] as const])
      if (path.startsWith(`${seen}/`)) return `/proc/${this.#child.pid}/root${base}${path.slice(seen.length)}`;
    return path;
  }

  /** Whether the stages to come see this view, without a mount. No stage runs meanwhile. */
  shows(view: View): boolean {
    const { bases } = this.launch;
    const [from, to] = [this.view?.run, view.run];
    if (bases === undefined) return true;
    if (this.view?.identity !== view.identity) return false;
    if (from?.folder === to?.folder && from?.occupant === to?.occupant) return true;
    if (from === undefined || to === undefined || this.#child.pid === undefined) return false;
    if (!takeOver(this.#child.pid, bases, from, { run: to, identity: view.identity })) return false;
    this.view = view;
    return true;
  }

  /**
   * Shows the stages to come what this table mounts, and nothing that earlier ones saw. No stage runs meanwhile. Rejects with
   * HelperFailed, and then the helper is of no use any more.
   */
  async bind(view: View, table: string): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const fail = (why: string): void => {
      this.kill();
      reject(new HelperFailed(`a run's folders could not be mounted: ${why}`));
    };
    const deadline = setTimeout(() => fail(`it took more than ${READY_MS_MAX} ms`), READY_MS_MAX);
    this.#onBound = (isBound) => (isBound ? resolve() : fail(this.#complaint.trim()));
    this.#complaint = '';
    // A launcher that could not mount has ended.
    this.#orders?.once('close', () => fail(this.#complaint.trim() || 'the launcher has ended'));
    try {
      ftruncateSync(this.#tableFd ?? -1, 0);
      writeWhole(this.#tableFd ?? -1, Buffer.from(table));
      this.#orders?.write('bind\n');
      await promise;
      this.view = view;
    } finally {
      clearTimeout(deadline);
      this.#onBound = null;
      this.#orders?.removeAllListeners('close');
    }
  }

  /** The process of a stage gets ready and waits: a job that does (`waits` of renderJob). Before `run` with this job, or `discard`. */
  prepare(job: Buffer): void {
    this.#writeJob(job);
    this.#control.write('\n');
    this.#prepared = job;
  }

  /** Resolves when nothing of what was prepared is left. */
  discard(): Promise<void> {
    this.#prepared = null;
    this.#control.write('end\n');
    const ended = new Promise<void>((resolve) => {
      this.#onDiscarded = resolve;
    });
    return Promise.race([ended, this.gone]);
  }

  /** One at a time. Resolves when nothing of the stage is left. */
  run(job: Buffer, times: StageTimes, sink: OutputSink, user?: StageUser): Promise<StageExit> {
    if (user !== undefined) this.#giveTo(user);
    this.#pipes.attach(sink);
    return new Promise<StageExit>((resolve) => {
      const timeout = setTimeout(() => this.stop('timeout'), Math.min(times.timeoutMs, TIMER_MS_MAX));
      this.#stage = {
        sink,
        graceMs: times.graceMs,
        resolve,
        timeout,
        stopping: null,
        kill: undefined,
        reported: null,
        ending: undefined,
      };
      if (this.#prepared === job) this.#control.write(`${GO}\n`);
      else {
        this.#writeJob(job);
        this.#control.write(`${user?.uid ?? ''}\n`);
      }
      this.#prepared = null;
    });
  }

  /** Nothing of the job before is left in the file, which keeps what it takes of the memory where it can. */
  #writeJob(job: Buffer): void {
    writeWhole(this.#jobFd, job);
    if (this.#jobBytes > job.length) ftruncateSync(this.#jobFd, job.length);
    this.#jobBytes = job.length;
  }

  /** The job is read, and `/dev/stderr` opened, by the stage's own user. */
  #giveTo({ uid, gid }: StageUser): void {
    if (this.#givenTo === uid) return;
    fchownSync(this.#jobFd, uid, gid);
    this.#pipes.giveTo(uid, gid);
    this.#givenTo = uid;
  }

  stop(reason: StopReason): void {
    const stage = this.#stage;
    if (stage === null || stage.stopping !== null) return;
    stage.stopping = reason;
    clearTimeout(stage.timeout);
    stage.kill = setTimeout(() => this.kill(), stage.graceMs);
    // HELPER-2, and to the helper the sign to wait for what is left.
    if (this.usable) {
      ftruncateSync(this.#jobFd, 0);
      this.#jobBytes = 0;
    }
    // HELPER-5.
    if (this.launch.forksAhead === true) this.usable = false;
    // A stopped process would not see the first without the second.
    for (const signal of ['SIGTERM', 'SIGCONT'] as const) {
      if (this.isolation === 'group') this.#signalGroup(signal);
      else for (const process of this.#stageProcesses()) signalProcess(process, signal);
    }
  }

  /** Ends the stage that runs as if it had ended so by itself, and the helper with it. */
  endStage(exit: StageExit): void {
    if (this.#stage === null) return;
    this.#stage.reported = exit;
    this.kill();
  }

  kill(): void {
    this.usable = false;
    const pid = this.#child.pid;
    if (pid === undefined || this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    if (this.isolation === 'group') this.#signalGroup('SIGKILL');
    // HELPER-3. Before it is ready its PID 1 may not exist yet.
    const first = this.#first();
    if (first === null || !signalProcess(first, 'SIGKILL')) this.#child.kill('SIGKILL');
  }

  #first(): ProcessIdentity | null {
    if (this.isolation === 'group' || this.#child.pid === undefined) return null;
    return this.identities[1] ?? initBelow(this.#child.pid);
  }

  #stageProcesses(): ProcessIdentity[] {
    const root = this.identities.at(-1);
    if (root === undefined) return [];
    if (this.isolation !== 'group') return descendantsOf(root.pid);
    return membersOf(root.pid).filter(({ pid }) => pid !== root.pid);
  }

  #signalGroup(signal: NodeJS.Signals): void {
    try {
      if (this.#child.pid !== undefined) process.kill(-this.#child.pid, signal);
    } catch {
      // It is gone.
    }
  }

  /** Why it does not start, or a run's folders are not mounted; else only the shell's remarks about killed stages. */
  #onComplaint(data: Buffer): void {
    if (this.identities.length === 0 || this.#onBound !== null)
      this.#complaint = (this.#complaint + data.toString('utf8')).slice(0, COMPLAINT_CHARACTERS_MAX);
  }

  #onControl(data: Buffer): void {
    this.#received += data.toString('latin1');
    for (let end = this.#received.indexOf('\n'); end >= 0; end = this.#received.indexOf('\n')) {
      const line = this.#received.slice(0, end);
      this.#received = this.#received.slice(end + 1);
      if (line === 'map') this.#writeMaps();
      else if (line === 'ready') this.#onUp('ready');
      else this.#onStatus(Number(line));
    }
  }

  /** Of the launcher, a word a line; of the network stack, before any of them, its sign that it is up. */
  #onAnswer(words: string): void {
    if (words === STACK_IS_UP) this.#onUp('net');
    else this.#onBound?.(words === 'bound\n');
  }

  /** Only who stands outside a user namespace may say whom its numbers mean. */
  #writeMaps(): void {
    const { idMap = '' } = this.launch;
    try {
      for (const name of ['uid_map', 'gid_map']) writeFileSync(`/proc/${this.#child.pid}/${name}`, idMap);
      this.#control.write('\n');
    } catch (error) {
      this.#onFailed(new HelperFailed(`the users of a helper could not be mapped: ${String(error)}`));
    }
  }

  #onUp(what: string): void {
    this.#awaited.delete(what);
    if (this.#awaited.size === 0 && this.identities.length === 0) this.#becomeReady();
  }

  #becomeReady(): void {
    const pid = this.#child.pid;
    if (pid === undefined) return;
    const first = this.isolation === 'group' ? null : initBelow(pid);
    if (this.isolation !== 'group' && first === null) {
      this.#onFailed(new HelperFailed('a helper said ready and was gone'));
      return;
    }
    this.identities = first === null ? [identityOf(pid)] : [identityOf(pid), first];
    this.#onReady();
  }

  #onStatus(code: number): void {
    const stage = this.#stage;
    // HELPER-5.
    if (code > SIGNAL_BASE && this.launch.forksAhead === true) this.usable = false;
    if (stage === null) return this.#onNothingLeft();
    if (this.isolation !== 'group') {
      void this.#end(exitOf(code));
    } else if (stage.stopping !== null && this.#stageProcesses().length > 0) {
      // They have their grace; at its end the group is killed.
      setTimeout(() => this.#onStatus(code), GONE_POLL_MS * 4);
    } else {
      // Nothing proves that the group is empty but ending it, this helper with it.
      stage.reported = exitOf(code);
      this.kill();
    }
  }

  /** What was prepared has ended: it was discarded, or somebody has killed it, and then its helper is not waited for. */
  #onNothingLeft(): void {
    if (this.#onDiscarded === null) return this.kill();
    this.#onDiscarded();
    this.#onDiscarded = null;
  }

  /** HELPER-1: called when nothing of the stage can write any more. What is said later, while its output is taken, is not of it. */
  async #end(exit: StageExit): Promise<void> {
    const stage = this.#stage;
    if (stage !== null) await (stage.ending ??= this.#endOf(stage, exit));
  }

  async #endOf(stage: RunningStage, exit: StageExit): Promise<void> {
    clearTimeout(stage.timeout);
    const ending = stage.stopping === null ? exit : exitOfStop(stage.stopping);
    const pending = this.#pipes.finish();
    if (pending !== undefined) await pending;
    clearTimeout(stage.kill);
    this.#stage = null;
    stage.resolve(ending);
  }

  async #untilGone(): Promise<void> {
    const how = await new Promise<string>((resolve) => {
      this.#child.once('error', (error) => resolve(error.message));
      this.#child.once('exit', (code, signal) => resolve(signal ?? `exit code ${code}`));
    });
    this.usable = false;
    // The launcher may have been killed before its namespace: then that is still ending.
    const first = this.identities[1];
    while (first !== undefined && isAlive(first)) await new Promise((resolve) => setTimeout(resolve, GONE_POLL_MS));
    // Killed is not gone: the others of a group end after its first.
    while (this.isolation === 'group' && this.#stageProcesses().some(isAlive))
      await new Promise((resolve) => setTimeout(resolve, GONE_POLL_MS));
    if (this.#stage === null) await this.#pipes.finish();
    else await this.#end(this.#stage.reported ?? { kind: 'lost', cause: `its helper was ended from outside (${how})` });
    // What it has said last is read in the turn after.
    for (let turn = 0; turn < 2 && this.identities.length === 0; turn += 1) await nextTurn();
    const said = this.#complaint.trim();
    this.#onFailed(
      new HelperFailed(
        `a helper (${this.isolation}) ended before it was ready (${how})${said === '' ? '' : `: ${said}`}`,
        { isPassing: how === 'SIGKILL' || IS_SHORT.test(`${how}: ${said}`) },
      ),
    );
    this.#pipes.close();
    this.#control.destroy();
    this.#orders?.destroy();
    if (this.#tableFd !== null) closeSync(this.#tableFd);
    closeSync(this.#jobFd);
    if (this.#jobPath !== null) this.#scratch.remove(this.#jobPath);
  }
}

function writeWhole(fd: number, content: Buffer): void {
  for (let at = 0; at < content.length;) at += writeSync(fd, content, at, content.length - at, at);
}

interface Begun {
  readonly child: ChildProcess;
  readonly job: ReturnType<Scratch['jobFile']>;
  readonly tableFd: number | null;
  readonly stdoutFd: number;
  readonly stderrFd: number;
}

/** Where a machine is short of files or processes nothing is left open: it would be short for good. */
function begin(launch: Launch, scratch: Scratch): Begun {
  const own: number[] = [];
  const given: number[] = [];
  try {
    const pipe = (): PipeEnds => {
      const ends = scratch.pipe();
      own.push(ends.readFd);
      given.push(ends.writeFd);
      return ends;
    };
    const [stdout, stderr] = [pipe(), pipe()];
    const job = scratch.jobFile();
    own.push(job.fd);
    const { descriptors, tableFd } = launchDescriptors(launch, scratch, { own, given });
    const env = { PATH: HELPER_PATH, ...(job.path === null ? {} : { PENSTOCK_JOB: job.path }) };
    // A session of its own: what a terminal sends to the owner's group is the owner's to answer.
    const child = spawn(launch.file, launch.args, {
      env,
      cwd: '/',
      detached: true,
      stdio: ['ignore', 'ignore', 'pipe', 'pipe', job.fd, stdout.writeFd, stderr.writeFd, ...descriptors],
    });
    if (!hasPipes(child)) throw new HelperFailed('there are too many open files to start a helper');
    return { child, job, tableFd, stdoutFd: stdout.readFd, stderrFd: stderr.readFd };
  } catch (error) {
    for (const fd of own) closeSync(fd);
    throw error;
  } finally {
    for (const fd of given) closeSync(fd);
  }
}

/** Those after the helper's own: see `launch.sh`. */
function launchDescriptors(
  { mounts, hasStack, filter }: Launch,
  scratch: Scratch,
  { own, given }: { readonly own: number[]; readonly given: number[] },
): { descriptors: ('pipe' | 'ignore' | number)[]; tableFd: number | null } {
  if (mounts === undefined) return { descriptors: [], tableFd: null };
  const opened = (fds: number[], fd: number): number => {
    fds.push(fd);
    return fd;
  };
  const tableFd = opened(own, scratch.jobFile().fd);
  writeSync(tableFd, mounts);
  const loop = hasStack === true ? opened(given, scratch.loop()) : 'ignore';
  const filterFd = filter === undefined ? 'ignore' : opened(given, scratch.fileWith(filter));
  return { descriptors: ['pipe', tableFd, loop, filterFd], tableFd };
}

export function exitOfStop(reason: StopReason): StageExit {
  return reason === 'timeout' ? { kind: 'timeout' } : { kind: 'stopped', reason };
}

/** Of two names of one number (SIGABRT, SIGIOT) the first is the usual one. */
const signalNames = new Map<number, string>(
  Object.entries(constants.signals)
    .reverse()
    .map(([name, number]) => [number, name]),
);

/** A status above it is how a shell reports a signal; `exit 137` looks the same, to every shell. */
const SIGNAL_BASE = 128;

export function exitOf(code: number): StageExit {
  const signal = code > SIGNAL_BASE ? signalNames.get(code - SIGNAL_BASE) : undefined;
  return signal === undefined ? { kind: 'exit', code } : { kind: 'signal', signal, code, oom: false };
}
