import { setImmediate as settled } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { FairTurns } from '../src/index.ts';

/** Each piece is named when it begins, and ends when it is told to. */
function pieces(turns: FairTurns): {
  readonly begun: string[];
  ask(key: string, name: string): Promise<string>;
  end(error?: Error): Promise<void>;
} {
  const begun: string[] = [];
  const ends: ((error?: Error) => void)[] = [];
  return {
    begun,
    ask: (key, name) =>
      turns.run(key, async () => {
        begun.push(name);
        await new Promise<void>((done, fail) => ends.push((error) => (error === undefined ? done() : fail(error))));
        return name;
      }),
    async end(error) {
      ends.shift()?.(error);
      await settled();
    },
  };
}

const bounds = (perKeyMax: number, keysMax = 100) => ({ perKeyMax, keysMax, refusal: () => new Error('full') });

describe('fair turns', () => {
  it('let a few pieces work at once, and those that wait key by key', async () => {
    const { begun, ask, end } = pieces(new FairTurns({ atOnce: 2, waiting: bounds(100) }));
    const all = ['a1', 'a2', 'a3', 'a4', 'a5', 'b1', 'c1', 'b2'].map((name) => ask(name.slice(0, 1), name));
    await settled();
    expect(begun).toEqual(['a1', 'a2']);
    for (let left = all.length; left > 0; left -= 1) await end();
    expect(begun).toEqual(['a1', 'a2', 'a3', 'b1', 'c1', 'a4', 'b2', 'a5']);
    expect(await Promise.all(all)).toEqual(['a1', 'a2', 'a3', 'a4', 'a5', 'b1', 'c1', 'b2']);
  });

  it('go on after a piece that fails', async () => {
    const { begun, ask, end } = pieces(new FairTurns({ atOnce: 1, waiting: bounds(100) }));
    const failing = ask('a', 'a1').catch((error: Error) => error.message);
    const next = ask('b', 'b1');
    await end(new Error('away'));
    expect([await failing, begun]).toEqual(['away', ['a1', 'b1']]);
    await end();
    expect(await next).toBe('b1');
  });

  it('refuse one that has too many, and no other', async () => {
    const { ask, end } = pieces(new FairTurns({ atOnce: 1, waiting: bounds(1) }));
    const taken = [ask('a', 'a1'), ask('a', 'a2'), ask('b', 'b1')];
    await expect(ask('a', 'a3')).rejects.toThrow('full');
    for (let left = taken.length; left > 0; left -= 1) await end();
    expect(await Promise.all(taken)).toEqual(['a1', 'a2', 'b1']);
  });

  it('TURNS-3: leave places to others where one has as many pieces under way as it may', async () => {
    const { begun, ask, end } = pieces(new FairTurns({ atOnce: 3, ofKeyAtOnce: 2, waiting: bounds(100) }));
    const all = ['a1', 'a2', 'a3', 'a4', 'b1', 'b2'].map((name) => ask(name.slice(0, 1), name));
    await settled();
    expect(begun).toEqual(['a1', 'a2', 'b1']);
    for (let left = all.length; left > 0; left -= 1) await end();
    expect(begun).toEqual(['a1', 'a2', 'b1', 'a3', 'b2', 'a4']);
    await Promise.all(all);
  });
});
