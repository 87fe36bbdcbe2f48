/** A span as those who send some know it, and what takes it. */
import type { Log } from './log.ts';
import type { Meter } from './metrics.ts';

export type SamplerName = 'always_on' | 'always_off' | 'traceidratio';

export interface SpanRecord {
  readonly name: string;
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string | undefined;
  /** Milliseconds since 1970. */
  readonly from: number;
  readonly to: number;
  /** What is undefined is left out. Texts are cut. */
  readonly attributes: Readonly<Record<string, string | number | undefined>>;
  /** It did not go well. */
  readonly failed?: boolean | undefined;
  /** A request that serves a caller, or a part of its work. Default: a part. */
  readonly serves?: true | undefined;
  /** W3C: what else it belongs to. */
  readonly link?: string | undefined;
}

export interface Tracer {
  /** Whether the spans of a trace are wanted: the same in every process with the same variables. */
  keeps(traceId: string): boolean;
  send(span: SpanRecord): void;
  /** Sends what is left, within a deadline. */
  close(): Promise<void>;
}

export interface TracerOptions {
  /** Who sends: `scheduler`, `runner`, `serve`. */
  readonly service: string;
  readonly log: Pick<Log, 'info' | 'warn'>;
  readonly meter: Meter;
}
