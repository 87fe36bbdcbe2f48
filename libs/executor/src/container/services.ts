/** The containers beside a stage: all started at once, in the stage's network, and ready before the stage begins. */
import { setTimeout as delay } from 'node:timers/promises';
import { join } from 'node:path';
import type { OutputSink, StageService, StageSpec } from '../contract/port.ts';
import { Confined, type Holders } from './confined.ts';
import { Control, CONTROL_TARGET } from './control.ts';
import type { ContainerRequest, Engine } from './engine.ts';
import { EngineFailed, ImageFailed, ServiceFailed } from './errors.ts';
import type { Images } from './images.ts';

const READY_MS_MAX = 60_000;
const READY_POLL_MS = 200;
const READY_POLL_MS_MAX = 5_000;
/** Of what a service has been waited for: it is seen to be ready that much later at most. */
const READY_POLL_PART = 0.1;
/** So long before the end of its time it is asked once more, and from then on as at first. */
const READY_LAST_MS = 1_000;

export interface ServiceParts {
  readonly engine: Engine;
  readonly images: Images;
  readonly holders: Holders;
  /** Of the stage: names and folders of its services begin with it. */
  readonly name: string;
  readonly folder: string;
  readonly spec: StageSpec;
  readonly sink: OutputSink;
  readonly boot: string;
  /** What every container of the attempt is made with. */
  readonly common: Pick<ContainerRequest, 'labels' | 'capabilities' | 'limits' | 'seccompProfile'>;
  readonly user: string | undefined;
  readonly signal: AbortSignal;
  readonly remark: (text: string) => void;
}

export class Services {
  readonly #parts: ServiceParts;
  readonly #running: { readonly service: StageService; readonly container: Confined; readonly control: Control }[] = [];
  #isEnding = false;

  constructor(parts: ServiceParts) {
    this.#parts = parts;
  }

  /** Of the containers that run. */
  get names(): readonly string[] {
    return this.#running.map(({ container }) => container.name);
  }

  /** Resolves when all are ready. @throws ServiceFailed, ImageFailed, EngineFailed; the signal's reason */
  async start(services: readonly StageService[]): Promise<void> {
    const failed = new AbortController();
    const signal = AbortSignal.any([this.#parts.signal, failed.signal]);
    const outcomes = await Promise.allSettled(
      services.map(async (service, index) => {
        try {
          await this.#startOne(service, index, signal);
        } catch (error) {
          failed.abort(error);
          throw error;
        }
      }),
    );
    if (outcomes.some(({ status }) => status === 'rejected'))
      throw this.#parts.signal.aborted ? this.#parts.signal.reason : failed.signal.reason;
  }

  /** Kills them; resolves when they are removed and their output is handed over. */
  async end(): Promise<void> {
    this.#isEnding = true;
    await Promise.all(
      this.#running.splice(0).map(async ({ container, control }) => {
        try {
          await container.remove();
          await control.finish();
        } finally {
          control.close();
        }
      }),
    );
  }

  async #startOne(service: StageService, index: number, signal: AbortSignal): Promise<void> {
    const { engine, images, holders, name, folder, spec, sink, boot, common, user, remark } = this.#parts;
    const image = await this.#imageOf(service, images, spec.helperKey, signal);
    const argv = service.image.entrypoint ?? image.argv;
    if (argv.length === 0)
      throw new ServiceFailed(`the service ${service.name} has nothing to run: its image names no program`);
    const stream = `service:${service.name}` as const;
    const control = await Control.make(join(folder, `${name}-${index}`), undefined, true);
    control.attach({ write: (_stream, bytes) => sink.write(stream, bytes) });
    let container: Confined;
    try {
      signal.throwIfAborted();
      container = await Confined.make(
        engine,
        {
          ...common,
          name: `${name}-${index}`,
          image: image.id,
          argv: ['sh', '-c', boot, CONTROL_TARGET, ...argv],
          env: service.env,
          user: user ?? service.image.user,
          mounts: [{ source: control.folder, target: CONTROL_TARGET, readOnly: true }],
          network: { kind: 'of', container: name },
          hosts: [],
        },
        holders,
        signal,
      );
    } catch (error) {
      control.close();
      if (error instanceof EngineFailed)
        throw new ServiceFailed(`the service ${service.name} did not start: ${error.message}`);
      throw error;
    }
    this.#running.push({ service, container, control });
    control.go(Buffer.alloc(0));
    void control.ended.then(() => {
      if (!this.#isEnding) remark(`the service ${service.name} has ended`);
    });
    if (service.ready !== undefined) await this.#untilReady(service, service.ready, container, control, signal);
  }

  async #imageOf(service: StageService, images: Images, key: string, signal: AbortSignal) {
    try {
      return await images.have(service.image, key, signal, (full) =>
        this.#parts.remark(`the image ${full} is being brought`),
      );
    } catch (error) {
      if (error instanceof ImageFailed)
        throw new ImageFailed(
          `the image ${service.image.name} of the service ${service.name} could not be had: ${error.message}`,
        );
      throw error;
    }
  }

  async #untilReady(
    service: StageService,
    command: string,
    container: Confined,
    control: Control,
    signal: AbortSignal,
  ): Promise<void> {
    const limitMs = service.readyTimeoutMs ?? READY_MS_MAX;
    const over = AbortSignal.timeout(limitMs);
    const either = AbortSignal.any([signal, over]);
    const ended = new AbortController();
    void control.ended.then(() => ended.abort());
    const disturbed = AbortSignal.any([either, ended.signal]);
    let code: number | undefined;
    const since = performance.now();
    while (!over.aborted) {
      signal.throwIfAborted();
      if (ended.signal.aborted || !container.isAlive)
        throw new ServiceFailed(`the service ${service.name} ended before it was ready`);
      try {
        code = await this.#parts.engine.exec(container.name, ['sh', '-c', command], either);
        if (code === 0) return;
      } catch (error) {
        // A container that is just ending takes no command.
        if (!(error instanceof EngineFailed) && !either.aborted) throw error;
      }
      const waitedMs = performance.now() - since;
      await delay(readyPauseMs(waitedMs, limitMs - waitedMs), undefined, { signal: disturbed }).catch(() => {});
    }
    throw new ServiceFailed(notReadyText(service.name, limitMs, code));
  }
}

/** Without a code none of its commands has ended in all the time that it had. */
export function notReadyText(name: string, limitMs: number, code: number | undefined): string {
  const how = code === undefined ? 'did not end' : `ended with exit code ${code}`;
  return `the service ${name} was not ready within ${limitMs / 1000} s: its command ${how}`;
}

/**
 * Between two tries of a service's `ready`. Of each podman keeps two processes for five minutes: tries are close together as long as the
 * wait is short and where its time is nearly over, and of a service that is never ready there are fewer than a hundred at a time.
 */
export function readyPauseMs(waitedMs: number, leftMs: number): number {
  const pauseMs = Math.min(Math.max(READY_POLL_MS, waitedMs * READY_POLL_PART), READY_POLL_MS_MAX);
  return Math.min(pauseMs, Math.max(READY_POLL_MS, leftMs - READY_LAST_MS));
}
