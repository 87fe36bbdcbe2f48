/**
 * One stage attempt as a Pod, from its creation to the proof of its end (P36). It owns the Pod, the line to its guard and what of the
 * output was taken. It knows no other attempts.
 *
 * STAGE-POD-1. Nothing of the stage runs before `go` was sent, and `go` is sent once it is decided, to one uid only.
 * STAGE-POD-2. The guard is answered while the session holds, and never beyond its fence; the last fence that was answered is remembered.
 * STAGE-POD-3. It ends when the stage's container is seen terminated, or when the last answered fence and FENCE_MS have passed, or where `go`
 *     was never sent, or no fence was answered and none will be. Phases and absence prove nothing.
 * STAGE-POD-4. A block of output is acknowledged when the sink has it, and the next line begins behind the last one that was: none is lost
 *     and none comes twice, however many lines break. What cannot be written here for want of room is asked for again.
 * STAGE-POD-5. What it is to know after its process has ended is on record before it counts: the Pod's name before its creation, `go`
 *     before it is sent, output and ending before they are acknowledged. So a later process goes on where the record ends.
 */
import { randomUUID } from 'node:crypto';
import { backoffMs, pause, pauseOrAbort } from '@penstock/async';
import type { V1Pod } from '@kubernetes/client-node';
import {
  bootClockMs,
  writeMasks,
  type OutputSink,
  type OutputStreamName,
  type StageExit,
  type StageProcess,
  type StageRecord,
  type StopReason,
} from '@penstock/executor';
import type { Cluster } from './cluster/cluster.ts';
import type { PodWatch } from './cluster/pod-watch.ts';
import { BadLine, ClusterError, mayPass } from './errors.ts';
import type { LineFrame, PodStream } from './line/frames.ts';
import { FramesInTurn } from './line/frames-in-turn.ts';
import { Line } from './line/line.ts';
import { endingOf } from './pod/ending.ts';
import { selectorOfPod } from './pod/labels.ts';
import { bringAllIn, bringAllOut, faultsOfAll } from './pod/bring-all.ts';
import type { Brought } from './pod/folders.ts';
import type { PodJob } from './pod/job-text.ts';
import { keepGivenFiles } from './pod/given-files.ts';
import { maskFileOf, renderPod, renderSecrets, type PodPlan } from './pod/pod-manifest.ts';
import type { RenewedFiles } from './pod/renewed-files.ts';
import { podNotes, type PodEnding, type PodPast } from './pod-notes.ts';
import { stateOf, type PodState } from './pod/pod-state.ts';
import { ServiceLogs } from './services/service-logs.ts';

/** What holds the Pods of a session. */
export interface Holding {
  readonly cluster: Cluster;
  readonly watch: PodWatch;
  /** Until when what the session holds may run, milliseconds of the boot clock; past once it is over. */
  readonly fence: () => number;
  /** How long after its fence an attempt counts as ended. */
  readonly fenceMs: number;
  /** Of what one stage has left. */
  readonly leavingBytesMax: number;
  /** Nothing is held any more. */
  readonly isOver: () => boolean;
  readonly warn: (error: unknown, message: string) => void;
}

/** What one attempt is, and where it stands. */
export interface StageOfPod {
  readonly plan: PodPlan;
  readonly job: PodJob;
  readonly renewed: RenewedFiles;
  /** Those that are to be brought by archive. */
  readonly folders: readonly Brought[];
  /** And what lies over them. */
  readonly laidOver: readonly Brought[];
  readonly sink: OutputSink;
  readonly record: StageRecord | undefined;
  /** Of an earlier process of the runner. */
  readonly past: PodPast | undefined;
}

const RETRY = { firstMs: 200, maxMs: 5_000 };
const CONNECT_RETRY = { firstMs: 100, maxMs: 1_000 };
/** Everything that changes wakes the loop; what only time changes is looked at so often. */
const LOOK_MS = 500;
/** Of the grace that a guard has to end a stage itself, before its Pod is deleted. */
const STOP_MARGIN_MS = 5_000;
/** A guard that has not given everything by then, after the end of its stage's container, is not waited for. */
const HAND_OVER_MS = 10_000;
const DELETE_TRIES_MAX = 5;
const READY_MS = 60_000;
const NOT_BROUGHT = 'its Pod ended before its files could be brought out of it';
/** What passes: a disk of the runner's own that is full, or out of order for a moment. */
const DISK_CODES: ReadonlySet<string | undefined> = new Set(['ENOSPC', 'EDQUOT', 'EIO', 'EMFILE', 'ENFILE']);
const DISK_RETRY_MS = 2_000;
const NO_OUTPUT = new Uint8Array();
const TELL_WAIT_MS = 3_000;
const WAITS_TOLD_MAX = 10;
/** Node fires a longer timer at once. */
const TIMER_MS_MAX = 2 ** 31 - 1;

export class StagePod implements StageProcess {
  readonly ended: Promise<StageExit>;
  startedAtMs: number | undefined;
  readonly leavingFaults: Map<string, string>;
  readonly #plan: PodPlan;
  readonly #job: PodJob;
  readonly #renewed: RenewedFiles;
  readonly #folders: readonly Brought[];
  readonly #laidOver: readonly Brought[];
  readonly #sink: OutputSink;
  readonly #record: StageRecord | undefined;
  readonly #holding: Holding;
  readonly #begunAt = bootClockMs();
  readonly #logs: ServiceLogs;
  /** Aborted when the attempt is over. */
  readonly #over = new AbortController();
  #state: PodState | null = null;
  readonly #toldWaits = new Set<string>();
  #handOverUntil: number | undefined;
  #isGone = false;
  #isAbandoned = false;
  #stopped: StopReason | null = null;
  #stopAt = Infinity;
  #deleting: Promise<void> | null = null;
  #timeout: NodeJS.Timeout | undefined;
  // The line.
  #line: Line | null = null;
  /** The line has said that it is of this Pod. */
  #isKnown = false;
  #connecting = false;
  #connectAt = 0;
  #connectFailures = 0;
  #areFoldersThere: boolean;
  #wasBegun = false;
  /** Of the Pod that an earlier process has seen. */
  #knownUid: string | undefined;
  #answeredFence = 0;
  #nonsense: BadLine | null = null;
  #bringFault: string | null = null;
  readonly #taken: Record<PodStream, number> = { out: 0, err: 0 };
  readonly #frames = new FramesInTurn(
    (frame) => this.#take(frame),
    (error) => this.#onUntaken(error),
  );
  /** Something that this line has brought could not be written: what came behind it is none of it either. */
  #isUntaken = false;
  #done: PodEnding | null = null;
  #leaving: Promise<void> | null = null;
  readonly #leavingStopped = new AbortController();
  readonly #serviceSince = new Map<string, number>();
  #wake: () => void = () => {};

  constructor({ plan, job, renewed, folders, laidOver, sink, record, past }: StageOfPod, holding: Holding) {
    this.#plan = plan;
    this.#job = job;
    this.#renewed = renewed;
    this.#folders = folders;
    this.#laidOver = laidOver;
    this.#areFoldersThere = folders.length + laidOver.length === 0;
    this.#sink = sink;
    this.#record = record;
    this.#holding = holding;
    this.leavingFaults = faultsOfAll(plan.spec.leavings, NOT_BROUGHT);
    this.#logs = new ServiceLogs({
      cluster: holding.cluster,
      pod: plan.name,
      take: (service, bytes, key) =>
        this.#tell(`service:${service}`, bytes, key === undefined ? {} : podNotes.seen(service, key)),
      taken: past?.seen ?? new Map(),
      signal: this.#over.signal,
    });
    if (past === undefined) record?.keep(podNotes.planned(plan.name));
    else this.#takeUp(past);
    this.ended = this.#run();
  }

  #takeUp({ uid, begunAt, taken, done }: PodPast): void {
    this.#knownUid = uid;
    Object.assign(this.#taken, taken);
    this.#done = done;
    if (begunAt === undefined) return;
    const now = bootClockMs();
    this.#wasBegun = true;
    this.#areFoldersThere = true;
    // The process that has ended may have answered by any renewal that it sent before.
    this.#answeredFence = now + this.#plan.leaseMs - this.#holding.fenceMs;
    this.#limitTime(now - begunAt);
  }

  stop(reason: StopReason): void {
    if (this.#stopped !== null) return;
    this.#stopped = reason;
    this.#stopAt = bootClockMs();
    if (reason === 'cancelled') this.#leavingStopped.abort();
    this.#line?.send(`stop ${this.#plan.graceMs}`);
    this.#wake();
  }

  replaceFile(variable: string, content: string): void {
    const order = this.#renewed.replace(variable, content);
    // A line that has not come up yet says all of them when it does.
    if (this.#isKnown) this.#line?.send(order);
  }

  /** The session is over: it is not answered any more, and deleted. */
  abandon(): void {
    this.#isAbandoned = true;
    this.#wake();
  }

  async #run(): Promise<StageExit> {
    const { watch } = this.#holding;
    const { name } = this.#plan;
    let exit: StageExit | null;
    try {
      exit = this.#wasBegun ? null : await this.#create();
      if (exit === null) {
        watch.add(name, { onPod: (pod) => this.#onPod(pod), onGone: (pod) => this.#onGone(pod) });
        if (this.#wasBegun) void this.#find();
        exit = await this.#untilEnded();
        const { overuse } = this.#state ?? {};
        if (overuse !== undefined) await this.#remark(`the stage was ended, for it has written too much: ${overuse}`);
        await this.#logs.end();
      }
    } catch (error) {
      exit = { kind: 'lost', cause: error instanceof Error ? error.message : String(error) };
    }
    clearTimeout(this.#timeout);
    this.#over.abort();
    this.#line?.close();
    watch.remove(name);
    void this.#delete(1);
    await this.#frames.taken;
    await this.#leaving;
    return exit;
  }

  /** Resolves when the API server has been told to delete it, or will not be told any more; after `ended`. */
  get removed(): Promise<void> {
    return this.#deleting ?? Promise.resolve();
  }

  /** Null: it is there. Quotas that are full and servers that restart are waited for, as long as a set-up may take. */
  async #create(): Promise<StageExit | null> {
    const { cluster } = this.#holding;
    const { name, setupMs } = this.#plan;
    const secrets = renderSecrets(this.#plan);
    let made = 0;
    for (let failures = 1; ; failures += 1) {
      if (this.#stopped !== null || this.#isAbandoned) return this.#ending();
      try {
        for (; made < secrets.length; made += 1) {
          const secret = secrets[made];
          if (secret !== undefined) await unlessThere(cluster.createSecret(secret));
        }
        // A try without an answer may have made it; the name is this attempt's alone.
        const pod = await cluster.createPod(renderPod(this.#plan)).catch((error: unknown) => {
          if (error instanceof ClusterError && error.code === 409) return cluster.readPod(name);
          throw error;
        });
        this.#record?.keep(podNotes.made(pod.metadata?.uid ?? ''));
        this.#onPod(pod);
        for (const secret of secrets)
          await cluster.giveSecret(secret.metadata?.name ?? '', pod).catch((error: unknown) => {
            this.#holding.warn(error, 'a Secret could not be given to its Pod; it is deleted with the attempt');
          });
        return null;
      } catch (error) {
        const isLate = bootClockMs() - this.#begunAt > setupMs;
        if (!(error instanceof ClusterError) || !mayPass(error) || isLate) {
          return { kind: 'lost', cause: error instanceof Error ? error.message : String(error) };
        }
        if (failures === 1) void this.#remark(`the stage waits for its Pod: ${error.message}`);
        await Promise.race([this.#woken(), pauseOrAbort(backoffMs(failures, RETRY), this.#over.signal)]);
      }
    }
  }

  /** What an earlier process has made, and the watch may tell of only when it changes. */
  async #find(): Promise<void> {
    const { signal } = this.#over;
    for (let failures = 1; !signal.aborted; failures += 1) {
      try {
        this.#onPod(await this.#holding.cluster.readPod(this.#plan.name));
        return;
      } catch (error) {
        if (error instanceof ClusterError && error.code === 404) return this.#onGone(null);
        await pauseOrAbort(backoffMs(failures, RETRY), signal);
      }
    }
  }

  async #untilEnded(): Promise<StageExit> {
    const { name } = this.#plan;
    for (;;) {
      const woken = this.#woken();
      const timer = setTimeout(() => this.#wake(), LOOK_MS);
      try {
        const exit = this.#look();
        if (exit !== null) return exit;
        await woken;
      } catch (error) {
        this.#holding.warn(error, `the attempt in the Pod ${name} could not be looked after`);
      } finally {
        clearTimeout(timer);
      }
    }
  }

  /** What is to be done by now; the ending where there is nothing left to be done. */
  #look(): StageExit | null {
    const now = bootClockMs();
    const state = this.#state;
    if (!this.#wasBegun) {
      const failed = this.#stopped !== null || this.#isAbandoned ? this.#ending() : this.#setupFault(now);
      if (failed !== null) return failed;
      this.#tellWait(now);
    }
    if (this.#isProvenEnded(now)) return this.#ending();
    const isStopOverdue = this.#done === null && now > this.#stopAt + this.#plan.graceMs + STOP_MARGIN_MS;
    if (this.#isAbandoned || this.#nonsense !== null || isStopOverdue) void this.#delete(1);
    const isThere = state?.guard.kind === 'running' && (this.#wasBegun || state.stage.kind === 'running');
    if (isThere && this.#line === null && !this.#connecting && now >= this.#connectAt) void this.#connect();
    return null;
  }

  /** STAGE-POD-3. */
  #isProvenEnded(now: number): boolean {
    if (this.#state?.stage.kind === 'terminated') return this.#hasHandedOver(now);
    if (!this.#wasBegun) return false;
    if (this.#answeredFence > 0) return now >= this.#answeredFence + this.#holding.fenceMs;
    // A guard that was told to begin and never until when has begun nothing, and gives up by itself when its set-up time is over.
    const isNotWanted = this.#stopped !== null || this.#isAbandoned || this.#isGone || this.#nonsense !== null;
    return isNotWanted || now - this.#begunAt > this.#plan.setupMs;
  }

  /** What the stage has printed is with its guard, also where its own container ended first: of its memory's end, say. */
  #hasHandedOver(now: number): boolean {
    if (this.#done !== null || !this.#wasBegun || this.#state?.guard.kind !== 'running' || this.#isAbandoned)
      return true;
    this.#handOverUntil ??= now + HAND_OVER_MS;
    return now >= this.#handOverUntil;
  }

  /** For whoever waits with it: each reason once. What passes by itself in a moment is none. */
  #tellWait(now: number): void {
    const reason = this.#state?.fault?.message ?? this.#state?.waitsFor;
    if (reason === undefined || now - this.#begunAt < TELL_WAIT_MS) return;
    if (this.#toldWaits.has(reason) || this.#toldWaits.size >= WAITS_TOLD_MAX) return;
    this.#toldWaits.add(reason);
    void this.#remark(`the stage waits for its Pod: ${reason}`);
  }

  /** Why a Pod whose stage has not begun is given up. */
  #setupFault(now: number): StageExit | null {
    const state = this.#state;
    const isLate = now - this.#begunAt > this.#plan.setupMs;
    if (state?.fault !== undefined && (state.fault.isFinal || isLate))
      return { kind: 'unplaced', reason: state.fault.reason, message: state.fault.message };
    for (const service of this.#plan.spec.place?.services ?? []) {
      const since = this.#serviceSince.get(service.name);
      const { readyTimeoutMs = READY_MS } = service;
      if (since !== undefined && now - since > readyTimeoutMs)
        return {
          kind: 'unplaced',
          reason: 'service',
          message: `the service '${service.name}' was not ready within ${readyTimeoutMs / 1000} s`,
        };
    }
    if (this.#bringFault !== null) return { kind: 'lost', cause: this.#bringFault };
    if (state?.takenAway !== undefined || this.#isGone) return this.#ending();
    if (isLate)
      return {
        kind: 'lost',
        cause: `its Pod did not run within ${this.#plan.setupMs / 1000} s${state?.waitsFor === undefined ? '' : `: ${state.waitsFor}`}`,
      };
    return null;
  }

  #ending(): StageExit {
    if (this.#nonsense !== null && this.#stopped === null && this.#done === null)
      return { kind: 'lost', cause: this.#nonsense.message };
    return endingOf({
      wasBegun: this.#wasBegun,
      isAbandoned: this.#isAbandoned,
      stopped: this.#stopped,
      done: this.#done,
      state: this.#state,
      isGone: this.#isGone,
    });
  }

  #onPod(pod: V1Pod): void {
    // The first uid only: what bears its name later is another's.
    this.#knownUid ??= pod.metadata?.uid;
    if (pod.metadata?.uid !== this.#knownUid) return;
    const state = stateOf(pod);
    this.#state = state;
    for (const { name, isRunning, isReady } of state.services) {
      if (isRunning) this.#logs.follow(name);
      if (isReady) this.#serviceSince.delete(name);
      else if (isRunning && !this.#serviceSince.has(name)) this.#serviceSince.set(name, bootClockMs());
    }
    this.#wake();
  }

  #onGone(pod: V1Pod | null): void {
    if (pod !== null) this.#onPod(pod);
    this.#isGone = true;
    this.#wake();
  }

  async #connect(): Promise<void> {
    this.#connecting = true;
    try {
      if (!this.#areFoldersThere) await this.#bringFolders();
      if (this.#over.signal.aborted) return;
      this.#line = new Line(this.#holding.cluster, this.#plan.name, {
        onHello: (uid, state) => this.#onHello(uid, state),
        onAsk: (askedAt) => this.#onAsk(askedAt),
        onFrame: (frame) => this.#frames.add(frame),
        onClose: (error) => this.#onClose(error),
      });
    } catch (error) {
      this.#onClose(error);
    } finally {
      this.#connecting = false;
    }
  }

  async #bringFolders(): Promise<void> {
    try {
      await bringAllIn(this.#inPod(this.#over.signal), this.#folders, this.#laidOver);
      this.#areFoldersThere = true;
    } catch (error) {
      // Where `tar` itself has failed it would fail again.
      if (error instanceof ClusterError && error.code === 422) this.#bringFault = error.message;
      throw error;
    }
  }

  #inPod(signal: AbortSignal): Parameters<typeof bringAllIn>[0] {
    const { cluster } = this.#holding;
    return { cluster, pod: this.#plan.name, signal, remark: (text) => this.#remark(text) };
  }

  #onHello(uid: string, state: string): void {
    const line = this.#line;
    if (line === null) return;
    if (uid !== this.#state?.uid) throw new BadLine(`its uid is ${uid}`);
    this.#connectFailures = 0;
    this.#isKnown = true;
    void this.#attach(line);
    for (const order of this.#renewed.orders) line.send(order);
    if (this.#stopped !== null) line.send(`stop ${this.#plan.graceMs}`);
    else if (state === 'waiting' && !this.#isAbandoned) this.#begin(line);
  }

  /** STAGE-POD-4: what an earlier line has brought is in the sink. The guard is answered meanwhile, however long that takes. */
  async #attach(line: Line): Promise<void> {
    await this.#frames.taken;
    if (this.#line !== line) return;
    this.#isUntaken = false;
    line.send(`attach ${this.#taken.out} ${this.#taken.err}`);
    // What an earlier line has acknowledged may not have arrived, and the guard waits for it when its window is full.
    for (const stream of ['out', 'err'] as const)
      if (this.#taken[stream] > 0) line.send(`ack ${stream} ${this.#taken[stream]}`);
  }

  /** STAGE-POD-1. Also where it is not known whether an earlier line has brought it: the guard begins once. */
  #begin(line: Line): void {
    for (const [name, text] of this.#job.files) {
      const lines = text.endsWith('\n') ? text : `${text}\n`;
      const mark = `-- ${randomUUID()} -- ${Buffer.byteLength(lines)}`;
      line.send(`put ${name} ${mark}\n${lines}${mark}`);
    }
    if (!this.#wasBegun) {
      this.#record?.keep(podNotes.begun(bootClockMs()));
      this.#wasBegun = true;
      this.#limitTime(0);
    }
    line.send('go');
  }

  #limitTime(pastMs: number): void {
    this.startedAtMs = performance.now() - pastMs;
    const leftMs = Math.max(0, this.#plan.spec.timeoutMs - pastMs);
    this.#timeout = setTimeout(() => this.stop('timeout'), Math.min(leftMs, TIMER_MS_MAX));
  }

  /** STAGE-POD-2. What the guard may run until is told by its own clock, from its own asking on. */
  #onAsk(askedAt: number): void {
    const now = bootClockMs();
    const fence = this.#holding.fence();
    if (fence <= now || this.#isAbandoned) return;
    this.#answeredFence = Math.max(this.#answeredFence, fence);
    this.#line?.send(`until ${Math.floor(askedAt + fence - now)}`);
  }

  #onUntaken(error: unknown): void {
    if (DISK_CODES.has((error as NodeJS.ErrnoException).code)) {
      this.#holding.warn(
        error,
        `what the stage in the Pod ${this.#plan.name} has left cannot be written; it is tried again`,
      );
      this.#isUntaken = true;
      this.#line?.close();
      this.#connectAt = bootClockMs() + DISK_RETRY_MS;
    } else this.#nonsense ??= error instanceof BadLine ? error : new BadLine(String(error));
    this.#wake();
  }

  async #take(frame: LineFrame): Promise<void> {
    if (this.#nonsense !== null || this.#isUntaken) return;
    if (frame.kind === 'blocks') {
      const { stream, first, count, bytes } = frame;
      if (first !== this.#taken[stream]) throw new BadLine(`block ${first} of ${stream} after ${this.#taken[stream]}`);
      const written = this.#tell(stream === 'out' ? 'stdout' : 'stderr', bytes, podNotes.taken(stream, first + count));
      if (written !== undefined) await written;
      this.#taken[stream] += count;
      this.#line?.send(`ack ${stream} ${this.#taken[stream]}`);
    } else if (frame.kind === 'outputs') {
      keepGivenFiles(this.#plan.spec, frame.bytes);
    } else if (frame.kind === 'masks') {
      const path = maskFileOf(this.#plan.spec);
      if (path === undefined) return;
      // Before the output that it is for, also when that is said again.
      this.#record?.keep({}, { stream: 'masks', bytes: frame.bytes });
      writeMasks(path, frame.bytes);
      // It is looked at where output arrives, and what it is for may come only when another has replaced it.
      await this.#sink.write('system', NO_OUTPUT);
    } else {
      if (this.#done === null) this.#record?.keep(podNotes.done(frame));
      this.#done ??= frame;
      // It has ended in its time.
      clearTimeout(this.#timeout);
      this.#leaving ??= this.#takeLeavings();
      // Also of a line that came after it was said.
      void this.#leaving.then(() => this.#line?.send('bye'));
      this.#wake();
    }
  }

  async #takeLeavings(): Promise<void> {
    const { leavingBytesMax: bytesMax } = this.#holding;
    const signal = AbortSignal.any([this.#over.signal, this.#leavingStopped.signal]);
    const { spec } = this.#plan;
    await bringAllOut(this.#inPod(signal), { spec, exit: this.#ending(), bytesMax }, this.leavingFaults);
  }

  #onClose(error: unknown): void {
    this.#line = null;
    this.#isKnown = false;
    if (error instanceof BadLine) this.#nonsense ??= error;
    this.#connectFailures += 1;
    this.#connectAt = bootClockMs() + backoffMs(this.#connectFailures, CONNECT_RETRY);
    this.#wake();
  }

  /** Asked for until the API server takes it; what a runner that ends cannot delete, its next start or another's sweep does. */
  #delete(graceSecs: number): Promise<void> {
    this.#deleting ??= this.#deleteNow(graceSecs);
    return this.#deleting;
  }

  async #deleteNow(graceSecs: number): Promise<void> {
    const { cluster, warn } = this.#holding;
    const { name } = this.#plan;
    for (let failures = 1; ; failures += 1) {
      try {
        await cluster.deletePod(name, graceSecs);
        if (renderSecrets(this.#plan).length > 0) await cluster.deleteSecrets(selectorOfPod(name));
        return;
      } catch (error) {
        if (failures === DELETE_TRIES_MAX) warn(error, `the Pod ${name} could not be deleted; it is tried again`);
        // A runner that ends does not wait for a server that is away.
        if (failures >= DELETE_TRIES_MAX && this.#holding.isOver()) return;
        await pause(backoffMs(failures, RETRY));
      }
    }
  }

  #woken(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#wake = resolve;
    return promise;
  }

  #remark(text: string): void | Promise<void> {
    return this.#tell('system', Buffer.from(`${text}\n`), {});
  }

  /** STAGE-POD-5. All output goes by here, and to the sink in the order of the record. */
  #tell(stream: OutputStreamName, bytes: Buffer, notes: Readonly<Record<string, string>>): void | Promise<void> {
    this.#record?.keep(notes, { stream, bytes });
    return this.#sink.write(stream, bytes);
  }
}

async function unlessThere(creating: Promise<void>): Promise<void> {
  await creating.catch((error: unknown) => {
    if (!(error instanceof ClusterError) || error.code !== 409) throw error;
  });
}
