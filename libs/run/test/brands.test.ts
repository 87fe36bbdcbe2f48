import { describe, expect, it } from 'vitest';
import { asEpoch, asSequence, asVersion, type Epoch, type RunId, type Sequence, type Version } from '@penstock/run';

describe('brands', () => {
  it('one given for another does not compile', () => {
    const epoch: Epoch = asEpoch(3);
    // @ts-expect-error An epoch is no sequence.
    const sequence: Sequence = epoch;
    // @ts-expect-error A sequence is no version.
    const version: Version = asSequence(3);
    // @ts-expect-error A run's id is no number.
    const id: RunId = epoch;
    expect([sequence, version, id]).toEqual([3, 3, 3]);
  });

  it.each([0.5, -1, Number.NaN, '3', null, undefined, 2 ** 53])('%s is none of them', (number) => {
    expect(() => asEpoch(number)).toThrow('an epoch is a whole number from 1 on');
    expect(() => asSequence(number)).toThrow(RangeError);
    expect(() => asVersion(number)).toThrow(RangeError);
  });

  it('0 is the position before the first sequence or version, and no epoch', () => {
    expect([asSequence(0), asVersion(0)]).toEqual([0, 0]);
    expect(() => asEpoch(0)).toThrow('not 0');
  });
});
