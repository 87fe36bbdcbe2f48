import { describe, expect, it } from 'vitest';
import { AnswerCache, type MadeAnswer } from '../src/graphql/answer-cache.ts';

function cacheOf(bytesMax = 1_000_000) {
  const world = { changes: 'one' as string | null, made: 0, asked: 0 };
  const cache = new AnswerCache<string>({
    changes: () => ((world.asked += 1), Promise.resolve(world.changes)),
    bytesOf: (answer) => answer.length,
    bytesMax,
  });
  const ask = (key: string, holds: MadeAnswer<string>['holds'] = 'committed', size = 1): Promise<string> =>
    cache.answer({ key, tenants: ['service'] }, () => {
      world.made += 1;
      return Promise.resolve({ answer: `${key} ${world.made}`.padEnd(size, '.'), holds });
    });
  return { world, ask };
}

describe('kept answers', () => {
  it('ANSWERS-3: one that is asked once costs no question; from the second time on it is kept', async () => {
    const { world, ask } = cacheOf();
    await ask('a');
    expect(world.asked).toBe(0);
    expect([await ask('a'), await ask('a'), await ask('a')]).toEqual(['a 2', 'a 2', 'a 2']);
  });

  it('ANSWERS-1: one is made anew when something was committed since, and where an owner does not say', async () => {
    const { world, ask } = cacheOf();
    await ask('a');
    expect(await ask('a')).toBe('a 2');
    world.changes = 'two';
    expect([await ask('a'), await ask('a')]).toEqual(['a 3', 'a 3']);
    world.changes = null;
    expect([await ask('a'), await ask('a')]).toEqual(['a 4', 'a 5']);
  });

  it('ANSWERS-1: what was committed while it was read makes it old', async () => {
    const { world, ask } = cacheOf();
    await ask('a');
    const reading = ask('a');
    await Promise.resolve();
    world.changes = 'two';
    await reading;
    const made = world.made;
    await ask('a');
    expect(world.made).toBe(made + 1);
  });

  it('ANSWERS-5: commits between all askings are soon not asked for first, and when they end the answer is kept again', async () => {
    const { world, ask } = cacheOf();
    await ask('a');
    let commits = 0;
    const askAfterCommit = async (): Promise<string> => {
      world.changes = `commit ${(commits += 1)}`;
      return await ask('a');
    };
    const answers: string[] = [];
    for (let asking = 0; asking < 40; asking++) answers.push(await askAfterCommit());
    expect(new Set(answers).size).toBe(40);
    expect(world.asked).toBeLessThan(15);
    const made = world.made;
    for (let asking = 0; asking < 10; asking++) await ask('a');
    expect(world.made - made).toBeLessThanOrEqual(9);
    const asked = world.asked;
    const calm = [await ask('a'), await ask('a'), await ask('a')];
    expect(new Set(calm).size).toBe(1);
    expect(world.asked).toBe(asked + 3);
    expect(await askAfterCommit()).not.toBe(calm[0]);
  });

  it('ANSWERS-4: those who come while one is made share the next, and a maker that fails fails alone', async () => {
    const { world, ask } = cacheOf();
    await ask('a');
    world.changes = null;
    const first = ask('a');
    const made = world.made;
    const others = Array.from({ length: 5 }, () => ask('a'));
    expect(new Set(await Promise.all(others)).size).toBe(1);
    await first;
    expect(world.made).toBe(made + 2);

    let fails = true;
    const cache = new AnswerCache<string>({ changes: () => Promise.resolve(null), bytesOf: () => 1 });
    const may = (): Promise<string> =>
      cache.answer({ key: 'b', tenants: [] }, async () => {
        if (fails) throw new Error('gone');
        return { answer: 'b', holds: 'committed' };
      });
    fails = false;
    await may();
    fails = true;
    const outcomes = Promise.allSettled([may(), may(), may()]);
    expect((await outcomes).map(({ status }) => status)).toEqual(['rejected', 'rejected', 'rejected']);
    fails = false;
    expect(await may()).toBe('b');
  });

  it('of ended runs nobody is asked; a failure is not kept', async () => {
    const { world, ask } = cacheOf();
    await ask('a', 'ended');
    await ask('a', 'ended');
    world.asked = 0;
    expect(await ask('a', 'ended')).toBe('a 2');
    expect(world.asked).toBe(0);
    for (const expected of ['b 3', 'b 4', 'b 5']) expect(await ask('b', 'never')).toBe(expected);
  });

  it('ANSWERS-2: the longest unasked goes where the bytes are used up, and one that is too large is not kept', async () => {
    const { world, ask } = cacheOf(1_000);
    for (const key of ['a', 'b']) for (let count = 0; count < 2; count++) await ask(key, 'committed', 400);
    await ask('a', 'committed', 400);
    for (let count = 0; count < 2; count++) await ask('c', 'committed', 400);
    const { made } = world;
    await ask('a', 'committed', 400);
    expect(world.made).toBe(made);
    await ask('b', 'committed', 400);
    expect(world.made).toBe(made + 1);
    for (let count = 0; count < 3; count++) await ask('d', 'committed', 600 * 1024);
    expect(world.made).toBe(made + 4);
  });
});
