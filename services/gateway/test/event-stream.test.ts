import { STAGE_TEXT_BYTES_MAX } from '@penstock/run';
import { describe, expect, it } from 'vitest';
import { EventStream } from '../src/event-stream/event-stream.ts';
import {
  chunk,
  completed,
  created,
  type EmittedMessage,
  messagesOf,
  outlineOf,
  queued,
  retrying,
  returned,
  RUN_ID,
  gone,
  mark,
  runCancelled,
  runCompleted,
  runStopped,
  skipped,
  started,
  T0,
} from './event-stream-fixtures.ts';
import type { StoredChunk } from '@penstock/bus';
import type { RunEvent } from '@penstock/run';
import { Cursor } from '../src/event-stream/cursor.ts';

/** All that is stored, as a replay gives it. */
function replay(events: readonly RunEvent[], chunks: readonly StoredChunk[]): EmittedMessage[] {
  const eventStream = new EventStream();
  eventStream.addEvents(1, events);
  for (const each of chunks) eventStream.addChunk(each);
  eventStream.eventsAsked(eventStream.sequence);
  eventStream.chunksAsked(eventStream.version);
  return messagesOf(eventStream.take());
}

const dataOf = (messages: readonly EmittedMessage[], event: string): Record<string, unknown>[] =>
  messages
    .filter((message) => message.event === event)
    .map((message) => JSON.parse(message.data()) as Record<string, unknown>);

describe('the messages of an event stream', () => {
  it('a stage is started, logged and completed, the run ends, and each message has the documented fields', () => {
    const messages = replay(
      [created(), queued('build'), started('build'), completed('build', 9), runCompleted()],
      [chunk(1, 'build', 'one\n\ntwo\n')],
    );
    expect(messages.map(({ event }) => event)).toEqual([
      'stage_started',
      'stage_log',
      'stage_log',
      'stage_log',
      'stage_completed',
      'pipeline_completed',
    ]);
    expect(messages.map((message) => JSON.parse(message.data()) as unknown)).toEqual([
      { type: 'stage_started', stage: 'build', status: 'Running', timestamp: '2026-11-21T12:00:00.001Z', attempt: 1 },
      { type: 'stage_log', stage: 'build', stream: 'stdout', line: 'one', timestamp: '2026-11-21T12:00:00.002Z' },
      { type: 'stage_log', stage: 'build', stream: 'stdout', line: '', timestamp: '2026-11-21T12:00:00.002Z' },
      { type: 'stage_log', stage: 'build', stream: 'stdout', line: 'two', timestamp: '2026-11-21T12:00:00.002Z' },
      {
        type: 'stage_completed',
        stage: 'build',
        status: 'Success',
        logs: 'one\n\ntwo\n',
        timestamp: '2026-11-21T12:00:00.003Z',
        attempt: 1,
      },
      { type: 'pipeline_completed', status: 'SUCCESS', timestamp: '2026-11-21T12:00:00.005Z' },
    ]);
  });

  it('a failed stage says why, and what comes after it is skipped with the reason', () => {
    const messages = replay(
      [
        created(),
        started('build'),
        completed('build', 0, { status: 'FAILED', reason: 'exit', exitCode: 3 }),
        skipped('deploy'),
        runCompleted('FAILED'),
      ],
      [],
    );
    expect(dataOf(messages, 'stage_completed')).toEqual([
      {
        type: 'stage_completed',
        stage: 'build',
        status: 'Failed',
        logs: '',
        timestamp: '2026-11-21T12:00:00.003Z',
        attempt: 1,
        reason: 'exit',
        exitCode: 3,
      },
    ]);
    expect(dataOf(messages, 'stage_skipped')).toEqual([
      {
        type: 'stage_skipped',
        stage: 'deploy',
        status: 'Skipped',
        reason: 'dependency',
        timestamp: '2026-11-21T12:00:00.004Z',
      },
    ]);
    expect(dataOf(messages, 'pipeline_completed')).toMatchObject([{ status: 'FAILED' }]);
  });

  it('a stage that fail_fast ends is completed as Failed with reason cancelled, started or not', () => {
    const messages = replay(
      [
        created(),
        started('a'),
        completed('a', 0, { status: 'CANCELLED', reason: 'cancelled' }),
        completed('b', 0, { attempt: 0, status: 'CANCELLED', reason: 'cancelled' }),
        runCompleted('FAILED'),
      ],
      [],
    );
    expect(dataOf(messages, 'stage_completed')).toMatchObject([
      { stage: 'a', status: 'Failed', reason: 'cancelled' },
      { stage: 'b', status: 'Failed', reason: 'cancelled', logs: '' },
    ]);
  });

  it('every attempt is started, only the last one is completed, with the text of its own', () => {
    const messages = replay(
      [
        created(),
        started('t'),
        retrying('t', 1, 6),
        started('t', 2),
        completed('t', 7, { attempt: 2 }),
        runCompleted(),
      ],
      [chunk(4, 't', 'first\n'), chunk(9, 't', 'second\n', { attempt: 2 })],
    );
    expect(outlineOf(messages)).toEqual([
      'stage_started t',
      't| first',
      'stage_retrying t',
      'stage_started t',
      't| second',
      'stage_completed t',
      'pipeline_completed',
    ]);
    expect(dataOf(messages, 'stage_completed')).toMatchObject([{ logs: 'second\n', attempt: 2 }]);
  });

  it('a grant that came back to its owner leaves no trace but its start', () => {
    const messages = replay(
      [
        created(),
        started('t'),
        returned('t'),
        started('t', 2, 'r2'),
        completed('t', 3, { attempt: 2 }),
        runCompleted(),
      ],
      [chunk(1, 't', 'ok\n', { attempt: 2, runner: 'r2' })],
    );
    expect(outlineOf(messages)).toEqual([
      'stage_started t',
      'stage_started t',
      't| ok',
      'stage_completed t',
      'pipeline_completed',
    ]);
  });

  it('a quarantined run ends as a failed pipeline', () => {
    const messages = replay(
      [
        created(),
        started('t'),
        { type: 'run_quarantined', at: T0 + 9, cause: 'broken' },
        gone('t', { logBytes: 2 }),
        { type: 'run_stopped', at: T0 + 9, status: 'FAILED' },
      ],
      [chunk(1, 't', 'x\n')],
    );
    expect(outlineOf(messages)).toEqual(['stage_started t', 't| x', 'pipeline_completed']);
    expect(dataOf(messages, 'pipeline_completed')).toMatchObject([{ status: 'FAILED', reason: 'quarantined' }]);
  });
});

describe('the text of lines', () => {
  const lines = (output: string | Uint8Array): unknown[] => {
    const size = typeof output === 'string' ? Buffer.byteLength(output) : output.length;
    return dataOf(
      replay([created(), started('t'), completed('t', size), runCompleted()], [chunk(1, 't', output)]),
      'stage_log',
    ).map(({ line }) => line);
  };

  it('a line is without its end, LF or CR LF; a CR within it stays', () => {
    expect(lines('a\r\nb\rc\n\r\nd\r')).toEqual(['a', 'b\rc', '', 'd\r']);
  });

  it('bytes that are not UTF-8 become U+FFFD', () => {
    expect(lines(Buffer.from([0x61, 0xff, 0x0a, 0xe2, 0x82, 0x0a, 0x00, 0x0a]))).toEqual(['a\ufffd', '\ufffd', '\0']);
  });

  it('what looks like a frame of the stream is text inside JSON, on one line', () => {
    const messages = replay(
      [created(), started('t'), completed('t', 43), runCompleted()],
      [chunk(1, 't', 'x\u2028y\revent: pipeline_completed\rdata: {}\n')],
    );
    const [log] = messages.filter(({ event }) => event === 'stage_log');
    expect(log?.data()).not.toMatch(/[\r\n]/u);
    expect(JSON.parse(log?.data() ?? '')).toMatchObject({ line: 'x\u2028y\revent: pipeline_completed\rdata: {}' });
  });

  it('stage_completed carries the end of a text of very many short pieces', () => {
    const lines = Array.from({ length: 50_000 }, (_, index) => `${index % 10}\n`);
    const chunks = lines.map((line, index) => chunk(index + 1, 't', line, { offset: 2 * index }));
    const text = lines.join('');
    const [done] = dataOf(
      replay([created(), started('t'), completed('t', text.length), runCompleted()], chunks),
      'stage_completed',
    );
    expect(done).toMatchObject({ truncated: true });
    expect(done?.['logs'] === text.slice(-STAGE_TEXT_BYTES_MAX)).toBe(true);
  });

  it("stage_completed carries the last 64 KiB of the stage's text, marked truncated, beginning with a whole character", () => {
    const text = `${'é'.repeat(40_000)}x\n`;
    const bytes = Buffer.byteLength(text);
    const [done] = dataOf(
      replay([created(), started('t'), completed('t', bytes), runCompleted()], [chunk(1, 't', text)]),
      'stage_completed',
    );
    expect(done).toMatchObject({ truncated: true });
    expect(Buffer.byteLength(done?.['logs'] as string)).toBe(STAGE_TEXT_BYTES_MAX);
    const [odd] = dataOf(
      replay([created(), started('t'), completed('t', bytes + 1), runCompleted()], [chunk(1, 't', `${text}!`)]),
      'stage_completed',
    );
    expect(Buffer.byteLength(odd?.['logs'] as string)).toBe(STAGE_TEXT_BYTES_MAX - 1);
    expect(text.concat('!').endsWith(odd?.['logs'] as string)).toBe(true);
  });

  it('a text of exactly 64 KiB is whole', () => {
    const [done] = dataOf(
      replay(
        [created(), started('t'), completed('t', STAGE_TEXT_BYTES_MAX), runCompleted()],
        [chunk(1, 't', 'x'.repeat(STAGE_TEXT_BYTES_MAX))],
      ),
      'stage_completed',
    );
    expect(done?.['logs']).toHaveLength(STAGE_TEXT_BYTES_MAX);
    expect(done).not.toHaveProperty('truncated');
  });

  it('the parts of a chunk keep their streams', () => {
    const whole = chunk(1, 't', 'out\nerr\nsys\nsrv\n');
    const parted: StoredChunk = {
      ...whole,
      chunk: {
        ...whole.chunk,
        parts: [
          ['stdout', 4],
          ['stderr', 4],
          ['system', 4],
          ['service:db', 4],
        ],
      },
    };
    const messages = replay([created(), started('t'), completed('t', 16), runCompleted()], [parted]);
    expect(dataOf(messages, 'stage_log').map(({ stream, line }) => [stream, line])).toEqual([
      ['stdout', 'out'],
      ['stderr', 'err'],
      ['system', 'sys'],
      ['service:db', 'srv'],
    ]);
  });
});

describe('P21: which chunks belong to the event stream', () => {
  it('a chunk waits for the stage_started of its attempt', () => {
    const eventStream = new EventStream();
    eventStream.addEvents(1, [created(), queued('t')]);
    eventStream.addChunk(chunk(1, 't', 'early\n'));
    expect(outlineOf(messagesOf(eventStream.take()))).toEqual([]);
    expect(eventStream.waitsFor).toBe('events');
    eventStream.addEvents(3, [started('t')]);
    expect(outlineOf(messagesOf(eventStream.take()))).toEqual(['stage_started t', 't| early']);
    expect(eventStream.waitsFor).toBe(null);
  });

  it('stage_completed waits for the last chunk of its attempt', () => {
    const eventStream = new EventStream();
    eventStream.addEvents(1, [created(), started('t'), completed('t', 8), runCompleted()]);
    eventStream.addChunk(chunk(1, 't', 'one\n'));
    expect(outlineOf(messagesOf(eventStream.take()))).toEqual(['stage_started t', 't| one']);
    expect(eventStream.waitsFor).toBe('chunks');
    eventStream.addChunk(chunk(2, 't', 'two\n', { offset: 4 }));
    expect(outlineOf(messagesOf(eventStream.take()))).toEqual(['t| two', 'stage_completed t', 'pipeline_completed']);
    expect(eventStream.ended).toBe(true);
  });

  it('chunks of a runner that the journal does not name are dropped', () => {
    const messages = replay(
      [created(), started('t'), completed('t', 3), runCompleted()],
      [chunk(1, 't', 'forged\n', { runner: 'evil' }), chunk(2, 't', 'ok\n')],
    );
    expect(outlineOf(messages)).toEqual(['stage_started t', 't| ok', 'stage_completed t', 'pipeline_completed']);
  });

  it('a chunk of an attempt that no event names holds up the others until the owner has been asked', () => {
    const eventStream = new EventStream();
    eventStream.addEvents(1, [created(), started('t')]);
    eventStream.addChunk(chunk(1, 't', 'forged\n', { attempt: 7 }));
    eventStream.addChunk(chunk(2, 't', 'ok\n'));
    expect(outlineOf(messagesOf(eventStream.take()))).toEqual(['stage_started t']);
    expect(eventStream.waitsFor).toBe('events');
    eventStream.eventsAsked(1);
    expect(outlineOf(messagesOf(eventStream.take()))).toEqual(['t| ok']);
  });

  it("bytes beyond the attempt's final offset are no part of the event stream", () => {
    const messages = replay(
      [created(), started('t'), completed('t', 4, { status: 'FAILED', reason: 'runner_lost' }), runCompleted('FAILED')],
      [chunk(1, 't', 'one\n'), chunk(2, 't', 'late\n', { offset: 4 })],
    );
    expect(outlineOf(messages)).toEqual(['stage_started t', 't| one', 'stage_completed t', 'pipeline_completed']);
    expect(dataOf(messages, 'stage_completed')).toMatchObject([{ logs: 'one\n' }]);
  });

  it('a chunk that was stored twice is emitted once', () => {
    const messages = replay(
      [created(), started('t'), completed('t', 8), runCompleted()],
      [chunk(1, 't', 'one\n'), chunk(2, 't', 'one\n'), chunk(3, 't', 'two\n', { offset: 4 }), chunk(4, 't', 'one\n')],
    );
    expect(outlineOf(messages)).toEqual([
      'stage_started t',
      't| one',
      't| two',
      'stage_completed t',
      'pipeline_completed',
    ]);
    expect(dataOf(messages, 'stage_completed')).toMatchObject([{ logs: 'one\ntwo\n' }]);
  });

  it('a chunk that was stored after its successor is emitted before it', () => {
    const messages = replay(
      [created(), started('t'), completed('t', 12), runCompleted()],
      [chunk(1, 't', 'two\n', { offset: 4 }), chunk(2, 't', 'thr\n', { offset: 8 }), chunk(3, 't', 'one\n')],
    );
    expect(outlineOf(messages)).toEqual([
      'stage_started t',
      't| one',
      't| two',
      't| thr',
      'stage_completed t',
      'pipeline_completed',
    ]);
  });

  it('a chunk that is gone for good is emitted as one line of the stream system, and the event stream goes on', () => {
    const messages = replay(
      [created(), started('t'), completed('t', 12), runCompleted()],
      [chunk(5, 't', 'two\n', { offset: 4 })],
    );
    expect(outlineOf(messages)).toEqual([
      'stage_started t',
      't! [4 bytes of this log are no longer available]',
      't| two',
      't! [4 bytes of this log are no longer available]',
      'stage_completed t',
      'pipeline_completed',
    ]);
  });

  it('a text with a part that is gone for good is marked truncated, at its beginning, in the middle or at its end', () => {
    const doneWith = (...chunks: readonly StoredChunk[]): Record<string, unknown> | undefined =>
      dataOf(replay([created(), started('t'), completed('t', 12), runCompleted()], chunks), 'stage_completed')[0];
    const [one, two, end] = [
      chunk(4, 't', 'one\n'),
      chunk(5, 't', 'two\n', { offset: 4 }),
      chunk(6, 't', 'end\n', { offset: 8 }),
    ];
    expect(doneWith(two, end)).toMatchObject({ logs: 'two\nend\n', truncated: true });
    expect(doneWith(one, end)).toMatchObject({ logs: 'one\nend\n', truncated: true });
    expect(doneWith(one, two)).toMatchObject({ logs: 'one\ntwo\n', truncated: true });
    expect(doneWith()).toMatchObject({ logs: '', truncated: true });
    expect(doneWith(one, two, end)).not.toHaveProperty('truncated');
  });

  it('nothing is given up before the stream has been asked', () => {
    const eventStream = new EventStream();
    eventStream.addEvents(1, [created(), started('t'), completed('t', 4)]);
    eventStream.chunksAsked(2);
    expect(outlineOf(messagesOf(eventStream.take()))).toEqual(['stage_started t']);
    expect(eventStream.waitsFor).toBe('chunks');
    eventStream.chunksAsked(3);
    expect(outlineOf(messagesOf(eventStream.take()))).toEqual([
      't! [4 bytes of this log are no longer available]',
      'stage_completed t',
    ]);
  });

  it('chunks that wait for a missing one are bounded: beyond what can be in flight it is given up', () => {
    const eventStream = new EventStream();
    eventStream.addEvents(1, [created(), started('t')]);
    const size = 64 * 1024;
    for (let index = 1; index <= 130; index++)
      eventStream.addChunk(chunk(index, 't', `${'x'.repeat(size - 1)}\n`, { offset: index * size }));
    const [, first, second] = outlineOf(messagesOf(eventStream.take()));
    expect(first).toBe(`t! [${size} bytes of this log are no longer available]`);
    expect(second).toMatch(/^t\| x+$/u);
  });
});

describe('EVENTSTREAM-5: a cancelled run', () => {
  it('is being cancelled at the cancel, and cancelled at the last: behind all that its stages wrote meanwhile', () => {
    const messages = replay(
      [created(), started('t'), runCancelled(2), gone('t', { logBytes: 13 }), runStopped(2)],
      [chunk(1, 't', 'before\n'), chunk(2, 't', 'after\n', { offset: 7, at: T0 - 3_600_000 })],
    );
    expect(outlineOf(messages)).toEqual([
      'stage_started t',
      'pipeline_cancelling',
      't| before',
      't| after',
      'pipeline_cancelled',
    ]);
    expect(dataOf(messages, 'pipeline_cancelling')).toEqual([
      { type: 'pipeline_cancelling', cancelledStages: 2, timestamp: '2026-11-21T12:00:00.005Z' },
    ]);
    expect(dataOf(messages, 'pipeline_cancelled')).toEqual([
      { type: 'pipeline_cancelled', status: 'CANCELLED', cancelledStages: 2, timestamp: '2026-11-21T12:00:00.007Z' },
    ]);
  });

  it('waits for the last chunk of an attempt that its runner has ended', () => {
    const eventStream = new EventStream();
    eventStream.addEvents(1, [created(), started('t'), runCancelled(1), gone('t', { logBytes: 7 }), runStopped(1)]);
    expect(outlineOf(messagesOf(eventStream.take()))).toEqual(['stage_started t', 'pipeline_cancelling']);
    expect(eventStream.waitsFor).toBe('chunks');
    eventStream.addChunk(chunk(1, 't', 'before\n'));
    expect(outlineOf(messagesOf(eventStream.take()))).toEqual(['t| before', 'pipeline_cancelled']);
    eventStream.addChunk(chunk(2, 't', 'more\n', { offset: 7 }));
    expect(messagesOf(eventStream.take())).toEqual([]);
  });

  it('of which nothing has run has two messages, and waits for nothing', () => {
    const eventStream = new EventStream();
    eventStream.addEvents(1, [created(), queued('t'), runCancelled(1), runStopped(1)]);
    expect(outlineOf(messagesOf(eventStream.take()))).toEqual(['pipeline_cancelling', 'pipeline_cancelled']);
  });
});

describe('EVENTSTREAM-4: a log that a mark closes', () => {
  it('loses nothing that was stored out of order, when an event about its attempt comes before its end', () => {
    const eventStream = new EventStream();
    eventStream.addEvents(1, [created(), started('t')]);
    eventStream.addChunk(chunk(1, 't', 'one\n'));
    eventStream.addChunk(chunk(2, 't', 'three\n', { offset: 8 }));
    expect(outlineOf(messagesOf(eventStream.take()))).toEqual(['stage_started t', 't| one']);
    const stopping = { type: 'stage_stopping', at: 1, stage: 't', attempt: 1, reason: 'cancelled' } as const;
    eventStream.addEvents(3, [stopping, runCancelled(1), gone('t', { logSequence: 4 })]);
    expect(outlineOf(messagesOf(eventStream.take()))).toEqual(['pipeline_cancelling']);
    eventStream.addChunk(chunk(3, 't', 'two\n', { offset: 4 }));
    eventStream.addChunk(mark(4, 't'));
    expect(outlineOf(messagesOf(eventStream.take()))).toEqual(['t| two', 't| three']);
  });

  it('what stands behind the mark waits for the event that names it, and is no part of the event stream', () => {
    const eventStream = new EventStream();
    eventStream.addEvents(1, [created(), started('t'), runCancelled(1)]);
    eventStream.addChunk(chunk(1, 't', 'one\n'));
    eventStream.addChunk(mark(2, 't'));
    eventStream.addChunk(chunk(3, 't', 'late\n', { offset: 4 }));
    expect(outlineOf(messagesOf(eventStream.take()))).toEqual(['stage_started t', 'pipeline_cancelling', 't| one']);
    expect(eventStream.waitsFor).toBe(null);
    eventStream.addEvents(4, [gone('t', { logSequence: 2 }), runStopped(1)]);
    expect(outlineOf(messagesOf(eventStream.take()))).toEqual(['pipeline_cancelled']);
  });

  it('a result that is committed after all has what stands behind the mark told', () => {
    const eventStream = new EventStream();
    eventStream.addEvents(1, [created(), started('t')]);
    eventStream.addChunk(chunk(1, 't', 'one\n'));
    eventStream.addChunk(mark(2, 't'));
    eventStream.addChunk(chunk(3, 't', 'two\n', { offset: 4 }));
    expect(outlineOf(messagesOf(eventStream.take()))).toEqual(['stage_started t', 't| one']);
    eventStream.addEvents(3, [completed('t', 8), runCompleted()]);
    expect(outlineOf(messagesOf(eventStream.take()))).toEqual(['t| two', 'stage_completed t', 'pipeline_completed']);
  });

  it('the end of a lost attempt waits for all before its mark, and says which bytes never came', () => {
    const eventStream = new EventStream();
    const lost = completed('t', 0, { status: 'FAILED', reason: 'runner_lost', logBytes: undefined, logSequence: 5 });
    eventStream.addEvents(1, [created(), started('t'), lost, runCompleted('FAILED')]);
    eventStream.addChunk(chunk(3, 't', 'two\n', { offset: 4 }));
    expect(outlineOf(messagesOf(eventStream.take()))).toEqual(['stage_started t']);
    eventStream.addChunk(mark(5, 't'));
    expect(outlineOf(messagesOf(eventStream.take()))).toEqual([
      't! [4 bytes of this log are no longer available]',
      't| two',
      'stage_completed t',
      'pipeline_completed',
    ]);
  });

  it('a mark that is gone from the stream is waited for until that was asked', () => {
    const eventStream = new EventStream();
    eventStream.addEvents(1, [created(), started('t'), runCancelled(1), gone('t', { logSequence: 5 }), runStopped(1)]);
    expect(outlineOf(messagesOf(eventStream.take()))).toEqual(['stage_started t', 'pipeline_cancelling']);
    expect(eventStream.waitsFor).toBe('chunks');
    eventStream.chunksAsked(4);
    expect(outlineOf(messagesOf(eventStream.take()))).toEqual(['pipeline_cancelled']);
  });

  it('a mark of another runner than the one of the attempt closes nothing', () => {
    const messages = replay(
      [created(), started('t'), completed('t', 8), runCompleted()],
      [chunk(1, 't', 'one\n'), mark(2, 't', { runner: 'evil' }), chunk(3, 't', 'two\n', { offset: 4 })],
    );
    expect(outlineOf(messages)).toContain('t| two');
  });

  it('what waits behind a mark is bounded: behind more than an owner leaves room for, the log goes on', () => {
    const eventStream = new EventStream();
    eventStream.addEvents(1, [created(), started('t')]);
    eventStream.addChunk(mark(1, 't'));
    const size = 64 * 1024;
    for (let index = 0; index < 130; index++)
      eventStream.addChunk(chunk(index + 2, 't', `${'x'.repeat(size - 1)}\n`, { offset: index * size }));
    expect(messagesOf(eventStream.take())).toHaveLength(1 + 2);
  });
});

describe('cursors', () => {
  it('a client that has some of the messages of one event gets the others, each once', () => {
    const skips: RunEvent = { type: 'stages_skipped', at: 1, reason: 'when', stages: ['a', 'b', 'c'] };
    const messages = replay([created(), skips, runCompleted()], []);
    expect(outlineOf(messages)).toEqual([
      'stage_skipped a',
      'stage_skipped b',
      'stage_skipped c',
      'pipeline_completed',
    ]);
    const cursor = new Cursor();
    messages.forEach((message, index) => {
      expect(messages.filter(({ position }) => cursor.emittedOf(position) === 0)).toEqual(messages.slice(index));
      cursor.advance(message.position);
      expect(Cursor.decode(cursor.encode(RUN_ID), RUN_ID)).toEqual(cursor);
    });
  });

  it('a cursor comes back as it was given', () => {
    const cursor = Object.assign(new Cursor(), { version: 7, notes: 1 });
    cursor.advance({ kind: 'line', runner: 2, sequence: 123_456_789, index: 3 });
    cursor.advance({ kind: 'line', runner: 0, sequence: 7, index: 0 });
    expect(Cursor.decode(cursor.encode(RUN_ID), RUN_ID)).toEqual(cursor);
  });

  it('a cursor knows what was emitted for each runner: a chunk that was missed beside a later one is still admitted', () => {
    const cursor = new Cursor();
    cursor.advance({ kind: 'line', runner: 1, sequence: 9, index: 0 });
    expect(cursor.emittedOf({ kind: 'line', runner: 0, sequence: 5, index: 0 })).toBe(0);
    expect(cursor.emittedOf({ kind: 'line', runner: 1, sequence: 9, index: 0 })).toBe(1);
    expect(cursor.emittedOf({ kind: 'line', runner: 1, sequence: 9, index: 1 })).toBe(0);
  });

  it('a cursor covers another one where it is as far in what each runner of that one has written', () => {
    const [far, both] = [new Cursor(), new Cursor()];
    far.advance({ kind: 'line', runner: 0, sequence: 9, index: 0 });
    both.advance({ kind: 'line', runner: 0, sequence: 7, index: 0 });
    expect(far.covers(both)).toBe(true);
    both.advance({ kind: 'line', runner: 1, sequence: 8, index: 0 });
    expect(far.covers(both)).toBe(false);
  });

  it('a garbled cursor, or that of another run, is none', () => {
    const cursor = Object.assign(new Cursor(), { version: 7 }).encode(RUN_ID);
    expect(Cursor.decode(cursor, RUN_ID.replace('beef', 'f00d'))).toBe(null);
    for (const garbled of ['', 'x', '12', `${cursor}x`, cursor.slice(1), '%00', 'é', 'A'.repeat(10_000)])
      expect(Cursor.decode(garbled, RUN_ID)).toBe(null);
  });
});
