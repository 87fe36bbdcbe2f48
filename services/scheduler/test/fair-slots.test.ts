/** How slots are shared between keys while more than one waits (DISPATCH-5). */
import { describe, expect, it } from 'vitest';
import { Dispatch } from '@penstock/scheduler/testing';

/** Runners whose stages end when the test says so; credits come back by themselves. */
class Pool {
  readonly dispatch: Dispatch;
  /** Key of each stage that runs, with its slot, the longest running first. */
  readonly running: { readonly key: string; readonly runner: string }[] = [];
  #credit = 0;

  constructor(slots: Readonly<Record<string, number>>, keySlots?: number) {
    this.dispatch = new Dispatch({ keySlots });
    for (const [runner, count] of Object.entries(slots)) {
      this.dispatch.sessionSeen({ runner, session: `${runner}-s`, labels: [runner], slots: count, attempts: [] });
      for (let index = 0; index < count; index++) this.#free(runner);
    }
  }

  offer(key: string, count: number, more: { readonly label?: string; readonly keySlots?: number } = {}): void {
    const labels = more.label === undefined ? [] : [more.label];
    for (let index = 0; index < count; index++) {
      let waits = true;
      this.dispatch.offer({
        key,
        priority: 0,
        keySlots: more.keySlots,
        labels,
        labelSet: labels.join(','),
        count: 1,
        waits: () => waits,
        since: () => undefined,
        boundTo: () => undefined,
        rest() {
          return this;
        },
        grant: (_, { runner }) => {
          waits = false;
          this.running.push({ key, runner });
          this.dispatch.keySlots.add(key, runner, 1);
          return true;
        },
      });
    }
    this.match();
  }

  /** Ends the longest running stage, of this key where one is given. */
  end(key?: string): void {
    const index = this.running.findIndex((stage) => key === undefined || stage.key === key);
    const [ended] = index < 0 ? [] : this.running.splice(index, 1);
    if (ended === undefined) throw new Error(`no stage of ${key ?? 'anybody'} runs`);
    this.dispatch.keySlots.add(ended.key, ended.runner, -1);
    this.#free(ended.runner);
    this.match();
  }

  count(key: string): number {
    return this.running.filter((stage) => stage.key === key).length;
  }

  match(): void {
    this.dispatch.match(0);
    this.dispatch.assertInvariants();
  }

  #free(runner: string): void {
    this.#credit += 1;
    this.dispatch.addCredits(0, { runner, session: `${runner}-s`, credits: [this.#credit] });
  }
}

describe('slots of a key while another waits', () => {
  it('are all of them where nobody else waits', () => {
    const pool = new Pool({ r: 6 });
    pool.offer('a', 10);
    expect(pool.count('a')).toBe(6);
  });

  it('who comes later waits for one stage to end at most', () => {
    const pool = new Pool({ r: 6 });
    pool.offer('a', 12);
    pool.offer('b', 1);
    pool.end('a');
    expect(pool.count('b')).toBe(1);
  });

  it('are at most half, however long its stages take and however short those of others', () => {
    const pool = new Pool({ r1: 4, r2: 4 });
    pool.offer('long', 100);
    pool.offer('short', 1_000);
    for (let turn = 0; turn < 4; turn++) pool.end('long');
    expect([pool.count('long'), pool.count('short')]).toEqual([4, 4]);
    // By turns alone the long ones would have every slot by now.
    for (let turn = 0; turn < 100; turn++) pool.end('short');
    expect([pool.count('long'), pool.count('short')]).toEqual([4, 4]);
  });

  it('are all again once nobody else waits', () => {
    const pool = new Pool({ r: 4 });
    pool.offer('a', 20);
    pool.offer('b', 3);
    for (let turn = 0; turn < 2; turn++) pool.end('a');
    expect([pool.count('a'), pool.count('b')]).toEqual([2, 2]);
    for (let turn = 0; turn < 3; turn++) pool.end('b');
    expect([pool.count('a'), pool.count('b')]).toEqual([4, 0]);
  });

  it('are no credit for later: who had all it may have for long overtakes another once, not as often as it did not get more', () => {
    const pool = new Pool({ r: 2 });
    pool.offer('long', 2);
    pool.offer('short', 1);
    pool.end('long');
    pool.offer('short', 200);
    expect([pool.count('long'), pool.count('short')]).toEqual([1, 1]);
    pool.offer('long', 20);
    for (let turn = 0; turn < 100; turn++) pool.end('short');
    pool.offer('third', 1);
    pool.end('short');
    expect([pool.count('long'), pool.count('third')]).toEqual([1, 1]);
    // The third keeps its slot. The others take turns in what is left.
    const turns: string[] = [];
    for (let turn = 0; turn < 6; turn++) {
      const [key = ''] = ['long', 'short'].filter((each) => pool.count(each) === 1);
      pool.end(key);
      turns.push(pool.count('short') === 1 ? 'short' : 'long');
    }
    expect(turns.filter((key) => key === 'short').length).toBeGreaterThanOrEqual(2);
    expect(turns.filter((key) => key === 'long').length).toBeGreaterThanOrEqual(2);
  });

  it('are one at least, and as many as the setting or its tier says', () => {
    const single = new Pool({ r: 1 });
    single.offer('a', 2);
    single.end();
    expect(single.count('a')).toBe(1);
    const set = new Pool({ r: 8 }, 1);
    set.offer('a', 20);
    set.offer('b', 20, { keySlots: 5 });
    for (let turn = 0; turn < 8; turn++) set.end('a');
    // All are full: then turns decide, and no slot stands empty.
    expect(set.running).toHaveLength(8);
    expect(set.count('b')).toBeGreaterThanOrEqual(5);
  });

  it('are counted where the stage could run: what a key has elsewhere is not held against it', () => {
    const pool = new Pool({ linux: 10, mac: 2 });
    pool.offer('a', 5, { label: 'linux' });
    pool.offer('b', 3, { label: 'mac' });
    pool.offer('a', 2, { label: 'mac' });
    expect([pool.count('a'), pool.count('b')]).toEqual([5, 2]);
    pool.end('b');
    expect([pool.count('a'), pool.count('b')]).toEqual([6, 1]);
  });

  it('another key waits for slots that it can use, or it does not count', () => {
    const pool = new Pool({ linux: 4 });
    pool.offer('other', 5, { label: 'mac' });
    pool.offer('a', 6);
    expect(pool.count('a')).toBe(4);
  });

  it('are left to a key of another scheduler too, until nothing waits there any more', () => {
    const pool = new Pool({ r: 4 });
    pool.offer('a', 10);
    pool.dispatch.waitsElsewhere('other', [[]], 0);
    for (let turn = 0; turn < 3; turn++) pool.end('a');
    expect(pool.count('a')).toBe(2);
    pool.dispatch.waitsElsewhere('other', [['nobody has it']], 0);
    pool.end('a');
    expect(pool.count('a')).toBe(4);
    pool.dispatch.waitsElsewhere('other', [[]], 0);
    pool.end('a');
    pool.end('a');
    pool.end('a');
    expect(pool.count('a')).toBe(2);
    pool.dispatch.forgetIdle(3_000);
    pool.match();
    expect(pool.count('a')).toBe(3);
  });

  it('are left to nobody any more who waits for other runners now, though no slot is offered anew', () => {
    const pool = new Pool({ r: 4 });
    pool.offer('a', 10);
    pool.dispatch.waitsElsewhere('other', [['r'], ['nobody has it']], 0);
    for (let turn = 0; turn < 3; turn++) pool.end('a');
    expect(pool.count('a')).toBe(2);
    expect(pool.dispatch.waitsElsewhere('other', [['r'], ['nobody has it']], 0)).toBe(false);
    pool.match();
    expect(pool.count('a')).toBe(2);
    expect(pool.dispatch.waitsElsewhere('other', [['nobody has it']], 0)).toBe(true);
    pool.match();
    expect(pool.count('a')).toBe(4);
  });

  it('what a full key waits for is demand, and keeps no other scheduler from a slot', () => {
    const pool = new Pool({ r: 2 });
    pool.offer('a', 5);
    expect(pool.dispatch.demand().flat()).toEqual([{ labels: [], count: 3, below: 0 }]);
    pool.offer('b', 1);
    expect(pool.dispatch.demand().flat()).toEqual([{ labels: [], count: 4, below: 1 }]);
  });
});
