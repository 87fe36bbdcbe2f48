import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  isRunId,
  keyOf,
  newRunId,
  partitionBits,
  partitionOf,
  partitionOfKey,
  runIdFitsKey,
  runIdTime,
} from '@penstock/run';

const random = fc.uint8Array({ minLength: 8, maxLength: 16 });
const now = fc.integer({ min: 0, max: 2 ** 47 });

describe('run ids', () => {
  it('are UUIDs of version 7 that carry their time and their key', () => {
    fc.assert(
      fc.property(now, fc.string(), random, (at, key, bytes) => {
        const id = newRunId({ now: at, key, random: bytes });
        expect(isRunId(id)).toBe(true);
        expect(runIdTime(id)).toBe(at);
        expect(runIdFitsKey(id, key)).toBe(true);
      }),
    );
  });

  it('an id names the partition of its key, whatever the number of partitions', () => {
    fc.assert(
      fc.property(now, fc.string(), random, fc.integer({ min: 0, max: 8 }), (at, key, bytes, bits) => {
        const partition = partitionOf(newRunId({ now: at, key, random: bytes }), 2 ** bits);
        expect(partition).toBe(partitionOfKey(key, 2 ** bits));
        expect(partition).toBeLessThan(2 ** bits);
      }),
    );
  });

  it('keep their routing: the hash of a key is part of the contract', () => {
    expect(newRunId({ now: 1_700_000_000_000, key: 'service/acme/shop', random: new Uint8Array(8) })).toBe(
      '018bcfe5-6800-7f74-8000-000000000000',
    );
    expect(runIdFitsKey(newRunId({ now: 1, key: 'a', random: new Uint8Array(8) }), 'b')).toBe(false);
  });

  it('spread keys over the partitions', () => {
    const counts = Array.from({ length: 16 }, () => 0);
    for (let index = 0; index < 1_600; index++) {
      const partition = partitionOfKey(`service/acme/repository-${index}`, 16);
      counts[partition] = (counts[partition] ?? 0) + 1;
    }
    expect(Math.min(...counts)).toBeGreaterThan(50);
    expect(Math.max(...counts)).toBeLessThan(200);
  });

  it('ids sort by their time', () => {
    const ids = [1, 2 ** 20, 2 ** 40].map((at) =>
      newRunId({ now: at, key: 'k', random: new Uint8Array(8).fill(at % 256) }),
    );
    expect(ids.toSorted()).toEqual(ids);
  });

  it.each([
    '',
    'x',
    '018bcfe5-6800-45cc-8000-000000000000',
    '018BCFE5-6800-75CC-8000-000000000000',
    '018bcfe5-6800-75cc-8000-00000000000',
    '018bcfe5-6800-75cc-c000-000000000000',
  ])('%j is none', (text) => {
    expect(isRunId(text)).toBe(false);
  });

  it('need random bytes, and a power of two of partitions', () => {
    expect(() => newRunId({ now: 1, key: 'k', random: new Uint8Array(7) })).toThrow(RangeError);
    for (const count of [0, 3, 512, -2, 1.5]) expect(() => partitionBits(count)).toThrow(RangeError);
    expect([1, 16, 256].map(partitionBits)).toEqual([0, 4, 8]);
  });

  it("a user's runs share a key; strangers in the service are kept apart", () => {
    expect(keyOf({ tenant: 'ada', repository: 'x/y', pipelineName: 'p' })).toBe('ada');
    expect(keyOf({ tenant: 'service', repository: 'x/y', pipelineName: 'p' })).toBe('service/x/y');
    expect(keyOf({ tenant: 'service', pipelineName: 'p' })).toBe('service/p');
  });
});
