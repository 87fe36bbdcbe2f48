/** What is said of a delivery that somebody has sent again, where it changes at that moment. */
import { expect, it } from 'vitest';
import { hookCalls, type HookCallsOptions } from '../src/hooks/calls.ts';

type Row = Awaited<ReturnType<HookCallsOptions['outbox']['get']>>;

/** `then`: what is found of it once it could not be changed. */
function callsWith(then: Row): ReturnType<typeof hookCalls> {
  const found: Row[] = [row, then];
  const outbox = {
    get: async () => found.shift() ?? null,
    change: async () => false,
    newest: async () => [],
    dead: async () => [],
  };
  const unasked = (): never => expect.unreachable('nothing is asked of it');
  const hooks = { isOf: async () => true, create: unasked, of: unasked, delete: unasked, addresses: unasked };
  return hookCalls({ hooks, outbox, wake: () => expect.unreachable('nothing is due'), now: () => 0 });
}

const row = { id: 'd', hook: 'h' } as Row;
const redeliver = { tenant: 't', id: 'd' };

it('one that is being sent is CONFLICT', async () => {
  await expect(callsWith(row)['hooks.redeliver'](redeliver)).rejects.toMatchObject({ code: 'CONFLICT' });
});

it('one that has gone with its hook is NOT_FOUND', async () => {
  await expect(callsWith(null)['hooks.redeliver'](redeliver)).rejects.toMatchObject({ code: 'NOT_FOUND' });
});
