import { describe, expect, it } from 'vitest';
import { NotPrepared } from '../src/workspace/errors.ts';
import { StageUsers } from '../src/workspace/stage-users.ts';

describe('the users that stages run as', () => {
  it('are one for each key, the same each time, and never one that owns a folder of an earlier start', () => {
    const users = new StageUsers({ first: 10_000, last: 10_010 }, new Set([10_000, 10_002]));
    expect(users.userOf('a')).toEqual({ uid: 10_001, gid: 10_001 });
    expect(users.userOf('b')).toEqual({ uid: 10_003, gid: 10_003 });
    expect(users.userOf('a')).toEqual({ uid: 10_001, gid: 10_001 });
  });

  it('are refused with the remedy when all have been given away, and those given stay', () => {
    const users = new StageUsers({ first: 10_000, last: 10_000 }, new Set());
    const first = users.userOf('a');
    expect(() => users.userOf('b')).toThrow(NotPrepared);
    expect(() => users.userOf('b')).toThrow('widen SERVICE_STAGE_UIDS');
    expect(users.userOf('a')).toBe(first);
  });
});
