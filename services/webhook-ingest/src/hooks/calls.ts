/** What the ingest answers about outgoing webhooks (`HookCalls` in @penstock/bus). */
import type { HookCalls, HookDeliveryView } from '@penstock/bus';
import { Conflict, NotFound } from '@penstock/errors';
import type { HooksRepository } from './hooks-repository.ts';
import { deliveryView, type Outbox } from './outbox.ts';

export interface HookCallsOptions {
  readonly hooks: Pick<HooksRepository, 'create' | 'of' | 'delete' | 'isOf' | 'addresses'>;
  readonly outbox: Pick<Outbox, 'get' | 'change' | 'newest' | 'dead'>;
  /** Something waits for this hook. */
  wake(hook: string): void;
  now(): number;
}

type Handlers = {
  readonly [V in keyof HookCalls]: (request: HookCalls[V]['request']) => Promise<HookCalls[V]['answer']>;
};

export function hookCalls({ hooks, outbox, wake, now }: HookCallsOptions): Handlers {
  const again = async (id: string, mayBe: (hook: string) => Promise<boolean>): Promise<HookDeliveryView> => {
    const notFound = (): NotFound => new NotFound(`There is no delivery '${id.slice(0, 200)}', or it is kept no more.`);
    const row = await outbox.get(id);
    if (row === null || !(await mayBe(row.hook))) throw notFound();
    // One that waits is due at once as well; its attempts so far count on.
    const change = { open: true, taken: false, asked: true, dueAt: 0, endedAt: 0, why: '', status: 0 };
    if (!(await outbox.change(row, change))) {
      if ((await outbox.get(id)) === null) throw notFound();
      throw new Conflict('This delivery is being sent at this very moment: look again.');
    }
    wake(row.hook);
    return deliveryView({ ...row, ...change });
  };
  return {
    'hooks.create': (hook) => hooks.create(hook, now()),
    'hooks.list': async ({ tenant }) => ({ hooks: await hooks.of(tenant) }),
    'hooks.delete': async ({ tenant, id }) => ({ deleted: await hooks.delete(tenant, id) }),
    async 'hooks.deliveries'({ tenant, id, limit }) {
      if (!(await hooks.isOf(tenant, id))) throw new NotFound(`There is no webhook '${id.slice(0, 100)}'.`);
      return { deliveries: (await outbox.newest(id, limit)).map(deliveryView) };
    },
    'hooks.redeliver': ({ tenant, id }) => again(id, (hook) => hooks.isOf(tenant, hook)),
    async 'hooks.dead'({ limit }) {
      const rows = await outbox.dead(limit);
      const addresses = await hooks.addresses(rows.map(({ hook }) => hook));
      return {
        deliveries: rows.flatMap((row) => {
          const address = addresses.get(row.hook);
          const endedAt = new Date(row.endedAt).toISOString();
          return address === undefined ? [] : [{ ...deliveryView(row), ...address, endedAt }];
        }),
      };
    },
    'hooks.redrive': ({ id }) => again(id, async (hook) => (await hooks.addresses([hook])).has(hook)),
  };
}
