import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { StoredChunk } from '@penstock/bus';
import type { RunEvent } from '@penstock/run';
import { Cursor } from '../src/event-stream/cursor.ts';
import { lineEmissions, lineEnvelope } from '../src/event-stream/emission.ts';
import { framesOf } from '../src/sse/frames.ts';
import { EventStream } from '../src/event-stream/event-stream.ts';
import {
  chunk,
  completed,
  created,
  gone,
  mark,
  outlineOf,
  queued,
  retrying,
  returned,
  RUN_ID,
  runCancelled,
  runCompleted,
  runStopped,
  skipped,
  started,
  type EmittedMessage,
  messagesOf,
} from './event-stream-fixtures.ts';

interface History {
  readonly events: readonly RunEvent[];
  readonly chunks: readonly StoredChunk[];
}

/**
 * A whole run: stages that run side by side or not, attempts that are returned, retried and completed, logs in chunks of
 * which some are stored twice or after their successors, forged ones, and some that are gone. The history is legal:
 * a chunk is stored after its attempt was granted and before its result was committed.
 */
function makeHistory(next: (max: number) => number): History {
  const events: RunEvent[] = [created()];
  const chunks: StoredChunk[] = [];
  let sequence = 0;
  const store = (make: (sequence: number) => StoredChunk): void => {
    sequence += 1 + next(3);
    chunks.push(make(sequence));
  };
  interface Live {
    stage: string;
    attempt: number;
    runner: string;
    written: number;
    last: { offset: number; text: string } | undefined;
    held: { offset: number; text: string } | undefined;
  }
  const waiting = Array.from({ length: 1 + next(4) }, (_, index) => ({ stage: `s ${index}`, attempt: 1 }));
  const live: Live[] = [];
  events.push(queued(...waiting.map(({ stage }) => stage)));
  let line = 0;

  const release = (attempt: Live): void => {
    const { held } = attempt;
    if (held === undefined) return;
    attempt.held = undefined;
    store((at) =>
      chunk(at, attempt.stage, held.text, { attempt: attempt.attempt, runner: attempt.runner, offset: held.offset }),
    );
  };
  const write = (attempt: Live): void => {
    const text = Array.from({ length: 1 + next(3) }, () => `line ${line++}${'é'.repeat(next(3))}\n`).join('');
    const piece = { offset: attempt.written, text };
    attempt.written += Buffer.byteLength(text);
    if (attempt.held === undefined && next(5) === 0) {
      attempt.held = piece;
      return;
    }
    if (next(12) > 0)
      store((at) =>
        chunk(at, attempt.stage, text, { attempt: attempt.attempt, runner: attempt.runner, offset: piece.offset }),
      );
    if (next(3) === 0) release(attempt);
    attempt.last = piece;
  };

  while (waiting.length > 0 || live.length > 0) {
    const choice = next(10);
    const attempt = live[next(Math.max(1, live.length))];
    if ((choice < 3 || live.length === 0) && waiting.length > 0) {
      const [one] = waiting.splice(next(waiting.length), 1);
      if (one === undefined) continue;
      if (next(8) === 0 && one.attempt === 1) {
        events.push(skipped(one.stage));
        continue;
      }
      const runner = `r${next(2)}`;
      events.push(started(one.stage, one.attempt, runner));
      live.push({ stage: one.stage, attempt: one.attempt, runner, written: 0, last: undefined, held: undefined });
    } else if (attempt === undefined) {
      continue;
    } else if (choice < 8) {
      write(attempt);
      const { last } = attempt;
      if (last !== undefined && next(6) === 0)
        store((at) =>
          chunk(at, attempt.stage, last.text, {
            attempt: attempt.attempt,
            runner: attempt.runner,
            offset: last.offset,
          }),
        );
      if (next(8) === 0)
        store((at) => chunk(at, attempt.stage, 'forged\n', { attempt: attempt.attempt + next(2), runner: 'evil' }));
    } else {
      release(attempt);
      live.splice(live.indexOf(attempt), 1);
      const again = attempt.attempt < 3 && next(3) === 0;
      if (attempt.written === 0 && next(2) === 0) {
        events.push(returned(attempt.stage, attempt.attempt));
        waiting.push({ stage: attempt.stage, attempt: attempt.attempt + 1 });
      } else if (again) {
        events.push(retrying(attempt.stage, attempt.attempt, attempt.written));
        waiting.push({ stage: attempt.stage, attempt: attempt.attempt + 1 });
      } else {
        events.push(completed(attempt.stage, attempt.written, { attempt: attempt.attempt }));
      }
    }
  }
  events.push(runCompleted());
  return { events, chunks };
}

/** A deterministic generator, so that fast-check shrinks one number and not a thousand choices. */
function choices(seed: number): (max: number) => number {
  let state = seed | 0;
  return (max) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) | 0;
    return Math.floor(((state >>> 8) / 2 ** 24) * max);
  };
}

function replay({ events, chunks }: History): EmittedMessage[] {
  const eventStream = new EventStream();
  eventStream.addEvents(1, events);
  for (const each of chunks) eventStream.addChunk(each);
  eventStream.eventsAsked(eventStream.sequence);
  eventStream.chunksAsked(eventStream.version);
  return messagesOf(eventStream.take());
}

/** Events and the chunks of each runner arrive in any interleaving of their orders; what one runner wrote may come long after. */
function watchLive({ events, chunks }: History, next: (max: number) => number): EmittedMessage[] {
  const eventStream = new EventStream();
  const messages: EmittedMessage[] = [];
  const queues = [...Map.groupBy(chunks, ({ runner }) => runner).values()].map((queue) => [...queue]);
  let version = 0;
  while (version < events.length || queues.length > 0) {
    if (next(2) === 0 && version < events.length) {
      const count = 1 + next(3);
      eventStream.addEvents(version + 1, events.slice(version, version + count));
      version = Math.min(events.length, version + count);
    } else if (queues.length > 0) {
      const index = next(queues.length);
      const queue = queues[index] ?? [];
      for (const arrived of queue.splice(0, 1 + next(3))) eventStream.addChunk(arrived);
      if (queue.length === 0) queues.splice(index, 1);
    }
    if (next(3) > 0) messages.push(...messagesOf(eventStream.take()));
  }
  eventStream.eventsAsked(eventStream.sequence);
  eventStream.chunksAsked(eventStream.version);
  messages.push(...messagesOf(eventStream.take()));
  expect(eventStream.ended).toBe(true);
  return messages;
}

const data = (messages: readonly EmittedMessage[]): string[] => messages.map((message) => message.data());
const eventsOf = (messages: readonly EmittedMessage[]): string[] =>
  data(messages.filter(({ event }) => event !== 'stage_log'));
const ofStage = (messages: readonly EmittedMessage[], stage: string): string[] =>
  data(messages).filter((text) => (JSON.parse(text) as { stage?: string }).stage === stage);
const stagesOf = (history: History): string[] => [
  ...new Set(history.events.flatMap((event) => ('stage' in event ? [event.stage] : []))),
];

describe('EVENTSTREAM-1: one event stream, however it is heard', () => {
  it('any interleaving of arrivals tells the same events in the same order, and each stage the same in the same order', () => {
    fc.assert(
      fc.property(fc.integer(), fc.integer(), (seed, arrivals) => {
        const history = makeHistory(choices(seed));
        const whole = replay(history);
        const live = watchLive(history, choices(arrivals));
        expect(eventsOf(live)).toEqual(eventsOf(whole));
        for (const stage of stagesOf(history)) expect(ofStage(live, stage)).toEqual(ofStage(whole, stage));
      }),
      { numRuns: 300 },
    );
  });

  it("stage_completed carries exactly the attempt's lines that were emitted before it", () => {
    fc.assert(
      fc.property(fc.integer(), fc.integer(), (seed, arrivals) => {
        const history = makeHistory(choices(seed));
        const text = new Map<string, string>();
        const compared: [emitted: string, logs: string][] = [];
        for (const message of watchLive(history, choices(arrivals))) {
          const fields = JSON.parse(message.data()) as { stage: string; line: string; stream: string; logs: string };
          if (message.event === 'stage_started') text.set(fields.stage, '');
          if (message.event === 'stage_log' && fields.stream !== 'system')
            text.set(fields.stage, `${text.get(fields.stage)}${fields.line}\n`);
          if (message.event === 'stage_completed') compared.push([text.get(fields.stage) ?? '', fields.logs]);
        }
        expect(compared.map(([, logs]) => logs)).toEqual(compared.map(([emitted]) => emitted));
      }),
      { numRuns: 200 },
    );
  });

  it('nothing forged is emitted, and no line is emitted twice', () => {
    fc.assert(
      fc.property(fc.integer(), fc.integer(), (seed, arrivals) => {
        const lines = outlineOf(watchLive(makeHistory(choices(seed)), choices(arrivals))).filter((text) =>
          text.includes('| '),
        );
        expect(lines.filter((text) => text.includes('forged'))).toEqual([]);
        expect(new Set(lines).size).toBe(lines.length);
      }),
      { numRuns: 200 },
    );
  });
});

/** The history, cut by a cancel: what lived then ends with a result, or without one behind a mark somewhere in its log. */
function cancelled(seed: number, share: number): History {
  const next = choices(seed ^ 0x5f3759df);
  const { events, chunks } = makeHistory(choices(seed));
  // Never the last one: a run that has ended is not cancelled.
  const kept = events.slice(0, 1 + Math.floor(share * (events.length - 2)));
  const live = new Map<string, Extract<RunEvent, { type: 'stage_started' }>>();
  for (const event of kept) {
    if (event.type === 'stage_started') live.set(event.stage, event);
    else if ('stage' in event) live.delete(event.stage);
  }
  // Room for marks between them.
  const stored = chunks.map((each) => ({ ...each, sequence: each.sequence * 10 }));
  const ends = [...live.values()].map(({ stage, attempt, runner }, index) => {
    const own = stored.filter(
      (each) => each.runner === runner && each.chunk.stage === stage && each.chunk.attempt === attempt,
    );
    if (next(2) === 0)
      return gone(
        stage,
        { logBytes: Math.max(0, ...own.map((each) => each.chunk.offset + each.chunk.output.length)) },
        attempt,
      );
    const sequence = (own[next(own.length)]?.sequence ?? 0) + 1 + index;
    const first = mark(sequence, stage, { attempt, runner });
    const again = mark(sequence + 10_000, stage, { attempt, runner });
    stored.push(...(next(3) === 0 ? [first, again] : [first]));
    return gone(stage, { logSequence: sequence }, attempt);
  });
  return {
    events: [...kept, runCancelled(1), ...ends, runStopped(1)],
    chunks: stored.toSorted((one, other) => one.sequence - other.sequence),
  };
}

describe('EVENTSTREAM-5: a run that is cancelled at any moment', () => {
  const moment = fc.double({ min: 0, max: 1, noNaN: true });

  it('ends with pipeline_cancelled, emitted once and last, and each stage is emitted alike however it is heard', () => {
    fc.assert(
      fc.property(fc.integer(), fc.integer(), moment, (seed, arrivals, share) => {
        const history = cancelled(seed, share);
        const whole = replay(history);
        const live = watchLive(history, choices(arrivals));
        expect(live.filter(({ event }) => event === 'pipeline_cancelled')).toHaveLength(1);
        expect(live.at(-1)?.event).toBe('pipeline_cancelled');
        expect(live.filter(({ event }) => event === 'pipeline_cancelling')).toHaveLength(1);
        expect(eventsOf(live)).toEqual(eventsOf(whole));
        for (const stage of stagesOf(history)) expect(ofStage(live, stage)).toEqual(ofStage(whole, stage));
      }),
      { numRuns: 300 },
    );
  });

  it('no stage that the cancel ended is completed, and none is mentioned that had not started', () => {
    fc.assert(
      fc.property(fc.integer(), fc.integer(), moment, (seed, arrivals, share) => {
        const history = cancelled(seed, share);
        const completedStages = history.events.filter(({ type }) => type === 'stage_completed').length;
        const startedStages = new Set(
          history.events.flatMap((event) => (event.type === 'stage_started' ? [event.stage] : [])),
        );
        const live = watchLive(history, choices(arrivals));
        expect(live.filter(({ event }) => event === 'stage_completed')).toHaveLength(completedStages);
        const logged = live
          .filter(({ event }) => event === 'stage_log')
          .map((message) => (JSON.parse(message.data()) as { stage: string }).stage);
        expect(logged.filter((stage) => !startedStages.has(stage))).toEqual([]);
      }),
      { numRuns: 200 },
    );
  });
});

describe('resuming by cursor', () => {
  /** What a client gets that was cut off after `kept` messages of one hearing and came back to a replay. */
  function resumed(heard: readonly EmittedMessage[], kept: number, again: readonly EmittedMessage[]): EmittedMessage[] {
    const reached = new Cursor();
    const before = heard.slice(0, kept);
    for (const { position } of before) reached.advance(position);
    const cursor = Cursor.decode(reached.encode(RUN_ID), RUN_ID);
    expect(cursor).toEqual(reached);
    const after = again.filter(({ position }) => {
      if (reached.emittedOf(position) > 0) return false;
      reached.advance(position);
      return true;
    });
    return [...before, ...after];
  }

  it('any cut of a live stream, resumed by a replay, is the whole event stream without loss or repetition', () => {
    fc.assert(
      fc.property(fc.integer(), fc.integer(), fc.double({ min: 0, max: 1, noNaN: true }), (seed, arrivals, cut) => {
        const history = makeHistory(choices(seed));
        const heard = watchLive(history, choices(arrivals));
        const whole = resumed(heard, Math.round(cut * heard.length), replay(history));
        expect(eventsOf(whole)).toEqual(eventsOf(heard));
        for (const stage of stagesOf(history)) expect(ofStage(whole, stage)).toEqual(ofStage(heard, stage));
      }),
      { numRuns: 500 },
    );
  });

  it('any cut of a cancelled run, resumed by a replay, is the whole event stream without loss or repetition', () => {
    const share = fc.double({ min: 0, max: 1, noNaN: true });
    fc.assert(
      fc.property(fc.integer(), fc.integer(), share, share, (seed, arrivals, moment, cut) => {
        const history = cancelled(seed, moment);
        const heard = watchLive(history, choices(arrivals));
        const whole = resumed(heard, Math.round(cut * heard.length), replay(history));
        expect(eventsOf(whole)).toEqual(eventsOf(heard));
        for (const stage of stagesOf(history)) expect(ofStage(whole, stage)).toEqual(ofStage(heard, stage));
      }),
      { numRuns: 300 },
    );
  });

  it('any cut of a replay, resumed by a live stream, is the whole event stream too, and so is a second cut', () => {
    fc.assert(
      fc.property(
        fc.integer(),
        fc.integer(),
        fc.double({ min: 0, max: 1, noNaN: true }),
        fc.double({ min: 0, max: 1, noNaN: true }),
        (seed, arrivals, first, second) => {
          const history = makeHistory(choices(seed));
          const heard = replay(history);
          const once = resumed(heard, Math.round(first * heard.length), watchLive(history, choices(arrivals)));
          const twice = resumed(once, Math.round(second * once.length), replay(history));
          expect(eventsOf(twice)).toEqual(eventsOf(heard));
          for (const stage of stagesOf(history)) expect(ofStage(twice, stage)).toEqual(ofStage(heard, stage));
        },
      ),
      { numRuns: 300 },
    );
  });
});

describe('the frames of emissions', () => {
  /** What must not be trusted to need no escape, what needs none, and what is no text at all. */
  const outputs = fc.array(
    fc.oneof(
      fc
        .oneof(fc.constantFrom('', 'plain', '"', '\\', '\u0000', '\u001b[31mred', '\r', '\u2028', '😀'), fc.string())
        .map((text) => Buffer.from(text)),
      fc.uint8Array({ maxLength: 12 }).map((bytes) => Buffer.from(bytes)),
    ),
    { maxLength: 600 },
  );

  it('are those of their messages one by one, from wherever a client has come to, whoever else has written', () => {
    fc.assert(
      fc.property(
        outputs.map((lines) => lines.map((line) => line.filter((byte) => byte !== 0x0a))),
        fc.oneof(fc.nat({ max: 1_400 }), fc.nat({ max: 47_000 })),
        fc.nat({ max: 700 }),
        fc.constantFrom(0, 1, 40),
        fc.array(fc.tuple(fc.nat({ max: 45 }), fc.nat()), { maxLength: 3 }),
        (lines, index, given, runner, others) => {
          const envelope = lineEnvelope('build', 'stdout', 0);
          const output = Buffer.concat(lines.flatMap((line) => [line, Buffer.from('\n')]));
          let next = index;
          const emissions = [
            ...lineEmissions(output, envelope, (count) => {
              next += count;
              return { kind: 'line', runner, sequence: 77_777, index: next - count };
            }),
          ];
          const reached = Object.assign(new Cursor(), { version: 3 });
          for (const [other, sequence] of others) reached.advance({ kind: 'line', runner: other, sequence, index: 5 });
          reached.advance({ kind: 'line', runner, sequence: 77_777, index: index + given - 1 });
          const together = reached.copy();
          let frames = '';
          for (let from = 0; from < emissions.length;) {
            const some = framesOf(emissions, together, RUN_ID, 20_000, from);
            frames += some.frames.bytes.toString();
            from = some.next;
          }
          const singly = messagesOf(emissions)
            .filter(({ position }) => reached.emittedOf(position) === 0)
            .map((message) => {
              reached.advance(message.position);
              return `id: ${reached.encode(RUN_ID)}\nevent: stage_log\ndata: ${message.data()}\n\n`;
            });
          expect(frames).toBe(singly.join(''));
          expect(together).toEqual(reached);
          const sent = frames
            .split('\n\n')
            .slice(0, -1)
            .map((frame) => JSON.parse(frame.split('\ndata: ')[1] ?? '') as { line: string });
          expect(sent.map(({ line }) => line)).toEqual(
            lines.map((line) => Buffer.from(line).toString().replace(/\r$/u, '')).slice(given),
          );
        },
      ),
      { numRuns: 300 },
    );
  });
});
