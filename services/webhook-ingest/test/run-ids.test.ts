import { runIdFitsKey, runIdTime } from '@penstock/run';
import { describe, expect, it } from 'vitest';
import { decodeDelivery, encodeDelivery, ingestKeys, runIdOf, type Delivery } from '../src/model/delivery.ts';

const NOW = Date.UTC(2026, 10, 22);

describe('the run id of a delivery (P24)', () => {
  it('has its time and its key, and is the same for the same delivery of one server', () => {
    const id = runIdOf('delivery', 'ada', NOW, ingestKeys('a secret'));
    expect(id).toBe(runIdOf('delivery', 'ada', NOW, ingestKeys('a secret')));
    expect([runIdTime(id), runIdFitsKey(id, 'ada')]).toEqual([NOW, true]);
    expect(id).not.toBe(runIdOf('another', 'ada', NOW, ingestKeys('a secret')));
  });

  it('cannot be told from the delivery by who has not the secret of this server', () => {
    const ids = ['a secret', 'another one'].map((secret) => runIdOf('delivery', 'ada', NOW, ingestKeys(secret)));
    expect(new Set(ids).size).toBe(2);
  });
});

describe('what is stored of a delivery (P24)', () => {
  const pushed = (paths: number, message = 'a push'): Delivery =>
    ({ id: 'd', message, paths: Array.from({ length: paths }, (_, at) => `src/${at}.ts`.padEnd(100, 'x')) }) as never;

  it('P24: is all of it, within 256 KiB', () => {
    const delivery = pushed(2_000);
    expect(decodeDelivery(encodeDelivery(delivery))).toEqual(delivery);
  });

  it('P24: has no list of paths where that is longer: it is not known then, and every filter matches', () => {
    const bytes = encodeDelivery(pushed(20_000, 'm'.repeat(1024 ** 2)));
    expect(bytes.length).toBeLessThan(256 * 1024);
    expect(decodeDelivery(bytes)).toMatchObject({ id: 'd', paths: null });
    expect(decodeDelivery(encodeDelivery(pushed(2_700))).paths).toBeNull();
  });
});
