import { describe, expect, it } from 'vitest';
import { ConcurrencyGroups, ownerOf } from '@penstock/scheduler/testing';

const members = ['a3f9c2', '77be01', '5d10ee', 'c0ffee'];
const share = (of: readonly string[]): (string | undefined)[] =>
  Array.from({ length: 256 }, (_, partition) => ownerOf(partition, of));

describe('who should own a partition', () => {
  it('everybody answers alike, in whatever order the members are known', () => {
    expect(share(members.toReversed())).toEqual(share(members));
  });

  it('shares are about equal', () => {
    for (const member of members) {
      const count = share(members).filter((owner) => owner === member).length;
      expect(count).toBeGreaterThan(32);
      expect(count).toBeLessThan(112);
    }
  });

  it("a member's going moves only its own share", () => {
    const before = share(members);
    const after = share(members.slice(1));
    const others = (owners: readonly (string | undefined)[]): (string | undefined)[] =>
      owners.filter((_, partition) => before[partition] !== members[0]);
    expect(others(after)).toEqual(others(before));
  });

  it('nobody owns anything where there is no member', () => {
    expect(ownerOf(0, [])).toBeUndefined();
  });
});

describe('concurrency groups', () => {
  it('go in the order of entering; leaving tells whose turn has come', () => {
    const groups = new ConcurrencyGroups();
    for (const run of ['1', '2', '3']) groups.enter('k', 'g', run);
    expect(groups.members('k', 'g')).toEqual(['1', '2', '3']);
    expect(groups.last('k', 'g')).toBe('3');
    expect(groups.leave('k', 'g', '2')).toBeUndefined();
    expect(groups.leave('k', 'g', '1')).toBe('3');
    expect(groups.leave('k', 'g', '3')).toBeUndefined();
    expect(groups.members('k', 'g')).toEqual([]);
  });

  it("are a key's own", () => {
    const groups = new ConcurrencyGroups();
    groups.enter('k', 'g', '1');
    expect(groups.members('other', 'g')).toEqual([]);
    expect(groups.leave('other', 'g', '1')).toBeUndefined();
  });
});
