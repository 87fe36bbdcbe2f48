import { describe, expect, it } from 'vitest';
import { NotPrepared } from '../src/workspace/errors.ts';
import { StageUsers } from '../src/workspace/stage-users.ts';

const NOTHING = { keys: new Set<string>(), uids: new Set<number>() };

describe('the users that stages run as', () => {
  it('are one for each key, the same each time, and never one that owns a folder of an earlier start', () => {
    const users = new StageUsers({ first: 10_000, last: 10_010 }, () => ({
      ...NOTHING,
      uids: new Set([10_000, 10_002]),
    }));
    expect(users.userOf('a')).toEqual({ uid: 10_001, gid: 10_001 });
    expect(users.userOf('b')).toEqual({ uid: 10_003, gid: 10_003 });
    expect(users.userOf('a')).toEqual({ uid: 10_001, gid: 10_001 });
  });

  it('come back from keys that have neither a stage nor a folder, however many keys there have been', () => {
    const users = new StageUsers({ first: 10_000, last: 10_002 }, () => NOTHING);
    const given = Array.from({ length: 1_000 }, (_, key) => users.userOf(`key-${key}`).uid);
    expect(new Set(given)).toEqual(new Set([10_000, 10_001, 10_002]));
  });

  it('stay with keys that have a stage or a folder; when all have, a further key is refused with the remedy', () => {
    const inUse = { keys: new Set(['running']), uids: new Set<number>() };
    const users = new StageUsers({ first: 10_000, last: 10_001 }, () => inUse);
    const running = users.userOf('running');
    const folder = users.userOf('folder');
    inUse.uids.add(folder.uid);
    expect(() => users.userOf('another')).toThrow(NotPrepared);
    expect(() => users.userOf('another')).toThrow('widen SERVICE_STAGE_UIDS');
    expect(users.userOf('running')).toBe(running);
    expect(users.userOf('folder')).toBe(folder);
    inUse.uids.clear();
    expect(users.userOf('another')).toEqual(folder);
  });
});
