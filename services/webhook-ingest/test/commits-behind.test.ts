/** Which commits come along with the one that is fetched for a push. */
import { describe, expect, it } from 'vitest';
import type { Delivery } from '../src/model/delivery.ts';
import { commitsBehind } from '../src/processing/decide.ts';

describe('the commits behind a push', () => {
  const push = (more: Partial<Delivery>): Delivery =>
    ({ cloneUrl: 'https://git.example/a.git', commit: 'of-the-push', message: 'a change', ...more }) as Delivery;

  it('are those that will be fetched from the same address', () => {
    const behind = [
      push({ commit: 'next' }),
      push({ commit: 'of-an-unknown-message', message: null }),
      push({ commit: 'skipped', message: 'typo [skip ci]' }),
      push({ commit: 'elsewhere', cloneUrl: 'https://git.example/b.git' }),
      push({ commit: 'of-a-pull-request', pullRequest: { number: 7 } as Delivery['pullRequest'] }),
    ];
    expect(commitsBehind(push({}), behind)).toEqual(['next', 'of-an-unknown-message']);
  });

  it('are none where nothing waits', () => {
    expect(commitsBehind(push({}), [])).toEqual([]);
  });
});
