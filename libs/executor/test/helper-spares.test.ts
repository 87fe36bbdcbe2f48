/** When a pool starts a helper that nobody has asked for yet: each start costs, and one that is missing is waited for. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { GuardGone } from '../src/contract/errors.ts';
import type { Guard } from '../src/guard/guard.ts';
import { HelperPool, type Way } from '../src/process/helper-pool.ts';
import { NO_SHELL_LIMITS } from '../src/limits/stage-limits.ts';
import { launchPlain, type Launch } from '../src/process/launch.ts';
import { Scratch } from '../src/process/scratch.ts';
import { viewOf, type View } from '../src/process/view.ts';

let scratch: Scratch;
let folder: string;
let pool: HelperPool;
let launched: number;

const launch = (): Launch => {
  launched += 1;
  return launchPlain('group', { covered: undefined, pipes: scratch.pipesFolder, limits: NO_SHELL_LIMITS });
};

function poolOf(
  idleMax: number,
  guard?: Pick<Guard, 'hold' | 'letGo'>,
  ways: readonly Way[] = [{ isolation: 'group', launch }],
): HelperPool {
  launched = 0;
  return new HelperPool({
    scratch,
    guard: guard as Guard | undefined,
    leftovers: undefined,
    ways,
    idleMax,
    idleLasting: idleMax,
    restMsMax: 60_000,
    groups: null,
    limits: undefined,
    spareCount: 1,
    warn: () => {},
  });
}

/** What a run sees whose folders are there. */
function viewNamed(name: string): View {
  return viewOf({ folder: mkdtempSync(join(folder, name)), temporary: mkdtempSync(join(folder, name)) });
}

/** Spares are started in the turn after. */
async function startedSince(before: number): Promise<number> {
  await setImmediate();
  await setImmediate();
  return launched - before;
}

beforeEach(() => {
  scratch = new Scratch();
  folder = mkdtempSync(join(tmpdir(), 'penstock-spares-'));
});
afterEach(async () => {
  await pool.close();
  scratch.close();
  rmSync(folder, { recursive: true, force: true });
});

it('a spare that is taken is made up for, also where no room was left beside it', async () => {
  pool = poolOf(1);
  await pool.prewarm(1);
  const before = launched;
  await pool.acquire({ key: 'a', place: '', view: viewNamed('one') });
  expect(await startedSince(before)).toBe(1);
}, 60_000);

it('a helper that goes on with its run needs none; one that changed over for want of a spare leaves one behind', async () => {
  pool = poolOf(8);
  const [one, other] = [viewNamed('one'), viewNamed('other')];
  const helper = await pool.acquire({ key: 'a', place: '', view: one });
  helper.view = one;
  pool.release(helper);
  const before = launched;
  expect(await pool.acquire({ key: 'a', place: '', view: one })).toBe(helper);
  expect(await startedSince(before)).toBe(0);
  pool.release(helper);
  expect(await pool.acquire({ key: 'a', place: '', view: other })).toBe(helper);
  expect(await startedSince(before)).toBe(1);
}, 60_000);

it('HELPERPOOL-2: none is handed out before the guard has confirmed to hold it, and none that it cannot hold (P15)', async () => {
  const asked = Promise.withResolvers<void>();
  const held = Promise.withResolvers<void>();
  const guard = { hold: () => (asked.resolve(), held.promise), letGo: () => {} };
  pool = poolOf(1, guard);
  let isHanded = false;
  const acquired = Promise.resolve(pool.acquire({ key: 'a', place: '', view: viewNamed('one') }));
  void acquired.then(
    () => (isHanded = true),
    () => {},
  );
  await asked.promise;
  await startedSince(0);
  expect(isHanded).toBe(false);
  held.resolve();
  expect((await acquired).usable).toBe(true);
  guard.hold = () => Promise.reject(new GuardGone('the guard has fired'));
  await expect(pool.acquire({ key: 'b', place: '', view: viewNamed('two') })).rejects.toThrow(GuardGone);
}, 60_000);

/** A way that ends with a complaint each time but the last. */
function failing(complaints: string[]): Way {
  const isolation = 'user-namespace';
  const launchNext = (): Launch => {
    const complaint = complaints.shift();
    // What a namespace is to be is no matter here: a helper that comes up is one of a group.
    return complaint === undefined
      ? launch()
      : { isolation, file: '/bin/sh', args: ['-c', 'echo "$1" >&2; exit 1', 'sh', complaint] };
  };
  return { isolation, launch: launchNext };
}

it.each(['sh: 0: Cannot fork', 'unshare: fork failed: Resource temporarily unavailable'])(
  'HELPERPOOL-5: a machine that is short for a moment steps no isolation down, and a later start has it: %s',
  async (complaint) => {
    pool = poolOf(1, undefined, [failing([complaint, complaint, complaint]), { isolation: 'group', launch }]);
    await expect(pool.prewarm(1)).rejects.toThrow(complaint);
    await pool.prewarm(1);
    expect([pool.isolation, launched]).toEqual(['user-namespace', 1]);
  },
  60_000,
);

it('HELPERPOOL-5: the first start is tried again where the machine was short for a moment', async () => {
  pool = poolOf(1, undefined, [failing(['sh: 0: Cannot fork', 'sh: 0: Cannot fork']), { isolation: 'group', launch }]);
  await pool.prewarm(1);
  expect([pool.isolation, launched]).toEqual(['user-namespace', 1]);
}, 60_000);

it('HELPERPOOL-5: nor does one that has no file left for a start, and that is told', async () => {
  const pipe = vi.spyOn(scratch, 'pipe').mockImplementationOnce(() => {
    throw Object.assign(new Error('EMFILE: too many open files'), { code: 'EMFILE' });
  });
  pool = poolOf(1, undefined, [failing([]), { isolation: 'group', launch }]);
  await expect(pool.prewarm(1)).rejects.toThrow('EMFILE');
  pipe.mockRestore();
  await pool.prewarm(1);
  expect(pool.isolation).toBe('user-namespace');
}, 60_000);

it('what the machine does not give is not asked for again', async () => {
  const refused = 'unshare: unshare failed: Operation not permitted';
  pool = poolOf(1, undefined, [failing([refused]), { isolation: 'group', launch }]);
  await pool.prewarm(1);
  expect([pool.isolation, launched]).toEqual(['group', 1]);
}, 60_000);
