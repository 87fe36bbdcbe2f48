/**
 * One stage in a container: image, container, services, the stage itself, and all of it gone again.
 *
 * CONTAINER-STAGE-1. Nothing of the stage runs before its container is held (P15): its first process waits for the job.
 * CONTAINER-STAGE-2. `ended` resolves when the stage's container and those of its services are removed, and all output is handed over.
 * CONTAINER-STAGE-3. How the stage ended is the engine's word on the container's first process, never the stage's own.
 */
import { statfs } from 'node:fs/promises';
import { join } from 'node:path';
import { UnstartableStage } from '../contract/errors.ts';
import type { OutputSink, StageExit, StageProcess, StageSpec, StopReason } from '../contract/port.ts';
import { UsageWatch } from '../limits/usage-watch.ts';
import { exitOf, exitOfStop } from '../process/helper.ts';
import { renderJob } from '../process/job.ts';
import { RenewedFiles } from '../process/renewed-files.ts';
import { addressesOf } from '../network/rules.ts';
import { Confined } from './confined.ts';
import { Control, CONTROL_TARGET } from './control.ts';
import type { ContainerState, Engine } from './engine.ts';
import { EngineFailed, ImageFailed, ServiceFailed } from './errors.ts';
import { filterNetwork } from './filter.ts';
import { planStage, type StageParts } from './stage-plan.ts';
import { Services } from './services.ts';

const GRACE_MS = 10_000;
/** Node fires a longer timer at once. */
const TIMER_MS_MAX = 2 ** 31 - 1;
const UP_MS_MAX = 30_000;
const UP_POLL_MS = 50;
const UNSTARTABLE_CODE = 126;
const NO_SHELL_CODE = 127;
const KILLED_CODE = 137;
/** A folder of the container's. */
const RENEWED = 'renewed';

export class ContainerStage implements StageProcess {
  readonly ended: Promise<StageExit>;
  startedAtMs: number | undefined;
  readonly #spec: StageSpec;
  readonly #sink: OutputSink;
  readonly #parts: StageParts;
  /** In what is shared with the container, which it cannot write to. */
  readonly #renewed: RenewedFiles | undefined;
  /** Of all that comes before the stage runs. */
  readonly #preparing = new AbortController();
  #stopped: StopReason | null = null;
  #ended: string | null = null;
  /** All that is left to be done is to clear away. */
  #isOver = false;
  #container: Confined | null = null;
  #control: Control | null = null;
  #services: Services | null = null;
  #timeout: NodeJS.Timeout | undefined;
  #grace: NodeJS.Timeout | undefined;
  #watch: UsageWatch | null = null;
  /** What it was ended for. */
  #exceeded: string | null = null;

  constructor(spec: StageSpec, sink: OutputSink, parts: StageParts) {
    this.#spec = spec;
    this.#sink = sink;
    this.#parts = parts;
    this.#renewed = RenewedFiles.of(spec, () => join(CONTROL_TARGET, RENEWED));
    this.ended = this.#run();
  }

  replaceFile(variable: string, content: string): void {
    const why = this.#renewed?.replace(variable, content);
    if (why !== undefined) this.#remark(why);
  }

  stop(reason: StopReason): void {
    if (this.#stopped !== null || this.#isOver) return;
    this.#stopped = reason;
    clearTimeout(this.#timeout);
    this.#preparing.abort(new Error('the stage was stopped'));
    if (this.startedAtMs === undefined) return;
    this.#control?.stop();
    this.#grace = setTimeout(() => this.#container?.kill(), this.#spec.graceMs ?? GRACE_MS);
  }

  /** From outside: its session is over, or its executor is closed. */
  end(cause: string): void {
    this.#ended ??= cause;
    this.#preparing.abort(new Error(cause));
    this.#container?.kill();
  }

  async #run(): Promise<StageExit> {
    let exit: StageExit;
    try {
      exit = await this.#prepareAndRun();
    } catch (error) {
      exit = await this.#exitOfFailure(error);
    }
    this.#isOver = true;
    clearTimeout(this.#timeout);
    clearTimeout(this.#grace);
    this.#watch?.close();
    this.#renewed?.close();
    if (this.#exceeded !== null) await this.#sink.write('system', Buffer.from(`${this.#exceeded}\n`));
    try {
      await this.#clear();
    } catch (error) {
      // No process of it is left; the next start removes what is left on the disk.
      this.#parts.holders.leftBehind(error);
    }
    return exit;
  }

  async #prepareAndRun(): Promise<StageExit> {
    const { connect, holders, name, folder } = this.#parts;
    const { signal } = this.#preparing;
    const plan = planStage(this.#spec, this.#parts);
    const { engine, images } = await connect();
    signal.throwIfAborted();
    const image = await images.have(plan.image, this.#spec.helperKey, signal, (full) =>
      this.#remark(`the image ${full} is being brought`),
    );
    this.#control = await Control.make(join(folder, name), plan.owner, false);
    const job = this.#render(this.#control);
    this.#renewed?.lay(join(this.#control.folder, RENEWED));
    this.#control.attach(this.#sink);
    signal.throwIfAborted();
    const request = plan.request(image.id, this.#control.folder);
    this.#container = await Confined.make(engine, request, holders, signal, async () => (await connect()).engine);
    await this.#untilUp(this.#container, this.#control);
    await this.#filter(this.#container, request.isOwnerInside !== undefined);
    signal.throwIfAborted();
    if (plan.services.length > 0) {
      this.#services = new Services(
        plan.serviceParts({
          engine,
          images,
          sink: this.#sink,
          signal,
          remark: (text) => this.#remark(text),
        }),
      );
      await this.#services.start(plan.services);
      signal.throwIfAborted();
    }
    await this.#watchDisk(engine);
    signal.throwIfAborted();
    this.startedAtMs = performance.now();
    this.#timeout = setTimeout(() => this.stop('timeout'), Math.min(this.#spec.timeoutMs, TIMER_MS_MAX));
    this.#control.go(job);
    await this.#control.ended;
    // What the engine takes to say how it ended is not the stage's time.
    clearTimeout(this.#timeout);
    return this.#exitOfState(await this.#container.endState(signal), this.#control.reported);
  }

  /** Its run's folders, and what it and its services write into their own file systems. */
  async #watchDisk(engine: Engine): Promise<void> {
    const { stageLimits: limits, name, asEngine } = this.#parts;
    const { run, folders = [] } = this.#spec;
    const written = run === undefined ? folders : [run.folder, run.temporary];
    if (limits === undefined) return;
    const { inReach, outOfReach } = await coversOf(engine, [name, ...(this.#services?.names ?? [])]);
    this.#watch = new UsageWatch({
      folders: [...written, ...inReach],
      measuring: asEngine === undefined ? undefined : [...asEngine, 'du'],
      helperPid: undefined,
      limits,
      elsewhere: async () => {
        const sizes = await Promise.all(outOfReach.map((each) => engine.writtenBytes(each).catch(() => 0)));
        return sizes.reduce((sum, size) => sum + size, 0);
      },
      onExceeded: (_what, remark) => {
        this.#exceeded = remark;
        this.#container?.kill();
      },
    });
  }

  #render(control: Control): Buffer {
    let scripts = 0;
    const write = (script: string): string => control.writeScript(`script-${(scripts += 1)}`, script, this.#spec.user);
    return renderJob({ ...this.#spec, env: { ...this.#spec.env, ...this.#renewed?.env } }, write, { defaults: {} })
      .text;
  }

  /** Of an open network what nobody's stage is to reach is kept away as far as this machine can. */
  async #filter({ pid }: Confined, hasOwnUsers: boolean): Promise<void> {
    const { network = 'open' } = this.#spec.place ?? {};
    if (network === 'none') return;
    try {
      await filterNetwork(pid, {
        denied: await addressesOf(this.#parts.deniedHosts),
        isPublic: network === 'public',
        owning: hasOwnUsers ? this.#parts.asEngine : undefined,
      });
    } catch {
      if (network === 'public')
        throw new UnstartableStage(
          'its network cannot be kept from private addresses here: it takes nft (nftables) and nsenter, and the right to use them',
        );
    }
  }

  /** Or it ended before: its image has no shell, or its entrypoint failed. */
  async #untilUp(container: Confined, control: Control): Promise<void> {
    let isUp = false;
    const up = control.up.then(() => {
      isUp = true;
    });
    const deadline = performance.now() + UP_MS_MAX;
    while (!isUp) {
      await Promise.race([up, new Promise((resolve) => setTimeout(resolve, UP_POLL_MS))]);
      if (isUp) return;
      this.#preparing.signal.throwIfAborted();
      if (!container.isAlive) {
        const state = await container.endState(this.#preparing.signal);
        throw new UnstartableStage(
          `its container ended before the stage (exit code ${state?.exitCode ?? 'unknown'}): its image, or the entrypoint, does not start a shell`,
        );
      }
      if (performance.now() > deadline) throw new EngineFailed(`its container was not up within ${UP_MS_MAX} ms`, 0);
    }
  }

  #exitOfState(state: ContainerState | null, reported: Control['reported']): StageExit {
    if (this.#stopped !== null && this.#ended === null) return exitOfStop(this.#stopped);
    if (this.#ended !== null || state === null)
      return { kind: 'lost', cause: this.#ended ?? 'its container was removed from outside' };
    if ((state.isOutOfMemory || reported?.isOutOfMemory === true) && state.exitCode !== 0)
      return { kind: 'signal', signal: 'SIGKILL', code: state.exitCode, oom: true };
    if (this.#exceeded !== null) return { kind: 'signal', signal: 'SIGKILL', code: KILLED_CODE, oom: false };
    if (reported === undefined)
      return { kind: 'lost', cause: `its container was ended from outside (exit code ${state.exitCode})` };
    return exitOf(state.exitCode);
  }

  async #exitOfFailure(error: unknown): Promise<StageExit> {
    if (this.#ended !== null) return { kind: 'lost', cause: this.#ended };
    if (this.#stopped !== null) return exitOfStop(this.#stopped);
    if (error instanceof ImageFailed) {
      const { place } = this.#spec;
      const isOfService = error.message.startsWith('the image ');
      return {
        kind: 'unplaced',
        reason: 'image',
        message: isOfService
          ? error.message
          : `the image ${place?.image?.name ?? ''} could not be had: ${error.message}`,
      };
    }
    if (error instanceof ServiceFailed) return { kind: 'unplaced', reason: 'service', message: error.message };
    if (error instanceof UnstartableStage) return this.#unstartable(error.message, UNSTARTABLE_CODE);
    if (error instanceof EngineFailed && isShellMissing(error.message))
      return this.#unstartable('there is no sh in its image', NO_SHELL_CODE);
    return { kind: 'lost', cause: messageOf(error) };
  }

  async #unstartable(why: string, code: number): Promise<StageExit> {
    await this.#sink.write('system', Buffer.from(`the stage cannot start: ${why}\n`));
    return { kind: 'exit', code };
  }

  /** CONTAINER-STAGE-2. Each is tried, whatever comes of the others. */
  async #clear(): Promise<void> {
    const services = this.#services?.end() ?? Promise.resolve();
    const outcomes = await Promise.allSettled([
      services,
      services.catch(() => {}).then(() => this.#container?.remove()),
    ]);
    await this.#control?.finish();
    this.#control?.close();
    for (const outcome of outcomes) if (outcome.status === 'rejected') throw outcome.reason;
  }

  #remark(text: string): void {
    void this.#sink.write('system', Buffer.from(`${text}\n`));
  }
}

function isShellMissing(message: string): boolean {
  return /(executable file .* not found|exec: "?sh"?:|no such file or directory.*\bsh\b|crun: executable)/i.test(
    message,
  );
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** Where containers write into their own file systems: folders that can be looked at here, and the containers of which that is not so. */
async function coversOf(
  engine: Engine,
  names: readonly string[],
): Promise<{ readonly inReach: readonly string[]; readonly outOfReach: readonly string[] }> {
  const inReach: string[] = [];
  const outOfReach: string[] = [];
  for (const name of names) {
    const folder = await engine.coverOf(name).catch(() => undefined);
    const isInReach =
      folder !== undefined &&
      (await statfs(folder).then(
        () => true,
        () => false,
      ));
    if (isInReach) inReach.push(folder);
    else outOfReach.push(name);
  }
  return { inReach, outOfReach };
}
