import { describe, expect, it } from 'vitest';
import { DemandAnnouncer } from '../src/dispatch/demand.ts';

const MESSAGE_BYTES_MAX = 128 * 1024;

const sets = (count: number, labels: number): { labels: string[]; count: number }[] =>
  Array.from({ length: count }, (_, set) => ({
    labels: Array.from({ length: labels }, (_, label) => `label-${set}-${label}-${'x'.repeat(20)}`),
    count: 1,
  }));

describe('the demand that a scheduler announces', () => {
  it('is one message while it is small, and says once that nothing waits any more', () => {
    const announcer = new DemandAnnouncer();
    const waiting = sets(3, 2);
    expect(announcer.take(waiting)).toEqual([waiting]);
    expect(announcer.take([])).toEqual([[]]);
    expect(announcer.take([])).toEqual([]);
  });

  it('never has a message that is larger than its bound, nor more than four at a tick, and every label set has its turn', () => {
    const announcer = new DemandAnnouncer();
    const waiting = sets(2_000, 20);
    const heard = new Set<string>();
    let ticks = 0;
    for (; heard.size < waiting.length && ticks < 10; ticks++) {
      const messages = announcer.take(waiting);
      expect(messages.length).toBeLessThanOrEqual(4);
      for (const message of messages) {
        expect(Buffer.byteLength(JSON.stringify(message))).toBeLessThanOrEqual(MESSAGE_BYTES_MAX + 2);
        for (const { labels } of message) heard.add(labels.join());
      }
    }
    expect(heard.size).toBe(waiting.length);
    expect(ticks).toBeGreaterThan(1);
  });

  it('leaves out a set of labels that no message carries, and announces the others', () => {
    const huge = { labels: ['y'.repeat(200_000)], count: 1 };
    const [small] = sets(1, 1);
    expect(new DemandAnnouncer().take([huge, ...(small === undefined ? [] : [small])])).toEqual([[small]]);
  });
});
