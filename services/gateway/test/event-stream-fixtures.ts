/** Runs as a journal and a stream would hold them, made from small descriptions, and what their event streams must be. */
import type { Chunk, OutputStream, StoredChunk } from '@penstock/bus';
import type { LogEnd, RunEvent } from '@penstock/run';
import type { StreamPosition } from '../src/event-stream/cursor.ts';
import type { Emission } from '../src/event-stream/emission.ts';

export const RUN_ID = '019ac000-0000-7000-8000-00000000beef';
/** 2026-11-21T12:00:00.000Z */
export const T0 = Date.UTC(2026, 10, 21, 12);

export const created = (): RunEvent => ({
  type: 'run_created',
  at: T0,
  tenant: 'service',
  key: 'service/demo',
  pipelineName: 'demo',
  yaml: '',
  priority: 0,
  origin: { kind: 'api' },
});
export const queued = (...stages: string[]): RunEvent => ({ type: 'stages_queued', at: T0, stages });
export const started = (stage: string, attempt = 1, runner = 'r1'): RunEvent => ({
  type: 'stage_started',
  at: T0 + 1,
  stage,
  attempt,
  runner,
  session: 's',
  credit: 1,
});
export const returned = (stage: string, attempt = 1): RunEvent => ({
  type: 'stage_returned',
  at: T0 + 1,
  stage,
  attempt,
});
export const retrying = (stage: string, attempt: number, logBytes: number): RunEvent => ({
  type: 'stage_retrying',
  at: T0 + 2,
  stage,
  attempt,
  reason: 'exit',
  exitCode: 1,
  logBytes,
  dueAt: T0 + 1002,
});
export const completed = (
  stage: string,
  logBytes: number,
  fields: Partial<Extract<RunEvent, { type: 'stage_completed' }>> = {},
): RunEvent => ({
  type: 'stage_completed',
  at: T0 + 3,
  stage,
  attempt: 1,
  status: 'SUCCESS',
  logBytes,
  ...fields,
});
export const skipped = (stage: string): RunEvent => ({
  type: 'stage_skipped',
  at: T0 + 4,
  stage,
  reason: 'dependency',
});
export const runCompleted = (status: 'SUCCESS' | 'FAILED' | 'SKIPPED' = 'SUCCESS'): RunEvent => ({
  type: 'run_completed',
  at: T0 + 5,
  status,
});
export const runCancelled = (cancelledStages: number, at = T0 + 5): RunEvent => ({
  type: 'run_cancelled',
  at,
  cancelledStages,
});

export const gone = (stage: string, end: LogEnd, attempt = 1): RunEvent => ({
  type: 'attempt_gone',
  at: T0 + 6,
  stage,
  attempt,
  ...end,
});
export const runStopped = (cancelledStages: number): RunEvent => ({
  type: 'run_stopped',
  at: T0 + 7,
  status: 'CANCELLED',
  cancelledStages,
});

/** The mark that an owner stores behind the log of an attempt (P21). */
export function mark(
  sequence: number,
  stage: string,
  fields: Pick<ChunkFields, 'attempt' | 'runner'> = {},
): StoredChunk {
  const stored = chunk(sequence, stage, '', fields);
  return { ...stored, chunk: { ...stored.chunk, parts: [], mark: true } };
}

export interface ChunkFields {
  readonly attempt?: number;
  readonly offset?: number;
  readonly runner?: string;
  readonly stream?: OutputStream;
  readonly at?: number;
}

export function chunk(
  sequence: number,
  stage: string,
  output: string | Uint8Array,
  fields: ChunkFields = {},
): StoredChunk {
  const bytes = typeof output === 'string' ? Buffer.from(output) : output;
  const body: Chunk = {
    stage,
    attempt: fields.attempt ?? 1,
    offset: fields.offset ?? 0,
    at: fields.at ?? T0 + 2,
    parts: [[fields.stream ?? 'stdout', bytes.length]],
    output: bytes,
  };
  return { sequence, runner: fields.runner ?? 'r1', chunk: body };
}

/** One message of an event stream, as a client gets it. */
export interface EmittedMessage {
  readonly position: StreamPosition;
  readonly event: string;
  data(): string;
}

export function messagesOf(emissions: readonly Emission[]): EmittedMessage[] {
  return emissions.flatMap((emission) =>
    Array.from({ length: emission.count }, (_, at) => ({
      position: behind(emission.position, at),
      event: emission.event,
      data: () => emission.data(at),
    })),
  );
}

function behind(position: StreamPosition, messages: number): StreamPosition {
  return position.kind === 'event' ? position : { ...position, index: position.index + messages };
}

/** `event stage` or `stage| line`, one a message. */
export function outlineOf(messages: readonly EmittedMessage[]): string[] {
  return messages.map((message) => {
    const data = JSON.parse(message.data()) as Record<string, string>;
    if (message.event !== 'stage_log')
      return [message.event, data['stage']].filter((part) => part !== undefined).join(' ');
    return `${data['stage']}${data['stream'] === 'system' ? '!' : '|'} ${data['line']}`;
  });
}
