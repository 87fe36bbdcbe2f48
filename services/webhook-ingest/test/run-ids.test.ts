import { runIdFitsKey, runIdTime } from '@penstock/run';
import { describe, expect, it } from 'vitest';
import { ingestKeys, runIdOf } from '../src/model/delivery.ts';

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
