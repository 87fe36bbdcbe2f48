import fc from 'fast-check';
import { expect, it } from 'vitest';
import { SseParser, type ServerEvent } from '../app/api/sse-parser.ts';

const STREAM = [
  ': ping',
  '',
  'id: 1',
  'event: stage_log',
  'data: {"line":"a"}',
  '',
  'data: first',
  'data:second',
  '',
  'id: 2',
  'event: left without data',
  '',
  'data: {"stays":"with id 2"}',
  '',
  'data: not over',
].join('\n');

const EVENTS: readonly ServerEvent[] = [
  { id: '1', name: 'stage_log', data: '{"line":"a"}' },
  { id: '1', name: 'message', data: 'first\nsecond' },
  { id: '2', name: 'message', data: '{"stays":"with id 2"}' },
];

it('events are the same in whatever pieces and with whatever ends of lines they come', () => {
  fc.assert(
    fc.property(
      fc.constantFrom('\n', '\r\n', '\r'),
      fc.array(fc.nat({ max: 30 }), { maxLength: 40 }),
      (end, lengths) => {
        const parser = new SseParser();
        const text = STREAM.replaceAll('\n', end);
        const events: ServerEvent[] = [];
        let from = 0;
        for (const length of [...lengths, text.length]) {
          events.push(...parser.push(text.slice(from, from + length)));
          from += length;
        }
        expect(events).toEqual(EVENTS);
      },
    ),
  );
});

it('goes through a piece once, however many events are in it', () => {
  // Looking through the rest of it at each line would take hours.
  const one = 'id: c\nevent: stage_log\ndata: {}\n\n';
  const count = 1_000_000;
  let events = 0;
  for (const { id, name, data } of new SseParser().push(one.repeat(count)))
    if (id === 'c' && name === 'stage_log' && data === '{}') events += 1;
  expect(events).toBe(count);
});
