/** What happens to an attempt here, as spans below that of its scheduler: from the grant to the process, and the process. */
import type { Time } from '@penstock/async';
import type { Job } from '@penstock/bus';
import { traceparentOf } from '@penstock/telemetry/request';
import { spanIdOf, traceparentFor, type Tracer } from '@penstock/telemetry/traces';

const SAMPLED = 1;

interface Parent {
  readonly traceparent: string;
  readonly traceId: string;
  readonly spanId: string;
  readonly isKept: boolean;
}

/** A moment by both clocks: what lies between two is told by the one that nobody sets. */
interface Moment {
  readonly wall: number;
  readonly boot: number;
}

export class AttemptTrace {
  readonly #job: Job;
  readonly #tracer: Tracer | undefined;
  readonly #time: Pick<Time, 'wallNow' | 'bootNow'>;
  /** Undefined: its scheduler sends no traces. */
  readonly #parent: Parent | undefined;
  readonly #granted: Moment;
  #begun: Moment | undefined;

  constructor(job: Job, tracer: Tracer | undefined, time: Pick<Time, 'wallNow' | 'bootNow'>) {
    this.#job = job;
    this.#tracer = tracer;
    this.#time = time;
    this.#parent = parentOf(job);
    this.#granted = this.#now();
  }

  /** For the stage, whose own spans go below. */
  get environment(): Readonly<Record<string, string>> {
    const parent = this.#parent;
    if (parent === undefined) return {};
    const isOurs = this.#tracer !== undefined && parent.isKept;
    return {
      TRACEPARENT: isOurs ? traceparentFor(parent.traceId, this.#spanId('execute'), true) : parent.traceparent,
    };
  }

  /** Its process is there. `again`: an earlier process of this runner has begun it. */
  begun(again: boolean): void {
    this.#begun = this.#now();
    if (!again) this.#send('start', this.#granted, {});
  }

  /** None of its processes is left. Does nothing where there was none. */
  ended(exitCode: number | undefined): void {
    if (this.#begun === undefined) return;
    this.#send('execute', this.#begun, { 'process.exit.code': exitCode });
  }

  #send(name: 'start' | 'execute', from: Moment, attributes: Readonly<Record<string, number | undefined>>): void {
    const parent = this.#parent;
    if (parent === undefined || !parent.isKept || this.#tracer === undefined) return;
    this.#tracer.send({
      name,
      traceId: parent.traceId,
      spanId: this.#spanId(name),
      parentSpanId: parent.spanId,
      from: from.wall,
      to: from.wall + (this.#time.bootNow() - from.boot),
      attributes,
    });
  }

  #spanId(name: string): string {
    const { runId, stage, attempt } = this.#job;
    return spanIdOf(runId, stage, attempt, name);
  }

  #now(): Moment {
    return { wall: this.#time.wallNow(), boot: this.#time.bootNow() };
  }
}

function parentOf(job: Job): Parent | undefined {
  const traceparent = traceparentOf(job.traceparent);
  if (traceparent === undefined) return undefined;
  const [, traceId = '', spanId = '', flags = ''] = traceparent.split('-');
  return { traceparent, traceId, spanId, isKept: (Number.parseInt(flags, 16) & SAMPLED) === SAMPLED };
}
