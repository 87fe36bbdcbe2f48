import { expect, it } from 'vitest';
import { mayBeAnswered } from '../src/processing/answered.ts';

/** Taken by an ingest whose clock is an hour ahead of the broker's; its sender waits for 8 s. */
const delivery = { receivedAt: 3_600_000 + 100, answeredBy: 3_600_000 + 8_100, storedAt: 1_000_000 };

it('a sender may have been answered once it has waited as long as it does, by the clock of the broker', () => {
  expect(mayBeAnswered(delivery, 1_000_000)).toBe(false);
  expect(mayBeAnswered(delivery, 1_006_999)).toBe(false);
  expect(mayBeAnswered(delivery, 1_007_000)).toBe(true);
});

it('so it may where the broker does not say what time it is, or one of before the delivery was stored', () => {
  expect(mayBeAnswered(delivery, Number.NaN)).toBe(true);
  expect(mayBeAnswered(delivery, 1_000_000 - 3_600_000)).toBe(true);
});

it('who does not wait is answered at once', () => {
  expect(mayBeAnswered({ ...delivery, answeredBy: delivery.receivedAt }, 1_000_000)).toBe(true);
});
