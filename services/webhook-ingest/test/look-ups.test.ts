import type { DocumentStore } from '@penstock/store';
import { describe, expect, it } from 'vitest';
import { DeliveriesRepository } from '../src/model/deliveries-repository.ts';

/** A store whose answers come when they are told to. */
class SlowStore {
  readonly asked: (readonly string[])[] = [];
  #answers: ((failure?: Error) => void)[] = [];

  open(): DeliveriesRepository {
    const collection = {
      getMany: (ids: readonly string[]) => {
        this.asked.push(ids);
        return new Promise((resolve, reject) =>
          this.#answers.push((failure) => (failure === undefined ? resolve([]) : reject(failure))),
        );
      },
    };
    return new DeliveriesRepository({ collection: () => collection } as unknown as DocumentStore);
  }

  answer(failure?: Error): void {
    for (const answer of this.#answers.splice(0)) answer(failure);
  }
}

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

describe('look-ups of decided deliveries', () => {
  it('DECISION-2: what is asked while others are under way is asked together, each once, and fails for itself', async () => {
    const store = new SlowStore();
    const deliveries = store.open();
    const first = [deliveries.get('a'), deliveries.get('b')];
    await turn();
    const second = [deliveries.get('c'), deliveries.get('a'), deliveries.get('c')];
    await turn();
    expect(store.asked).toEqual([['a', 'b']]);
    store.answer(new Error('away'));
    expect((await Promise.allSettled(first)).map(({ status }) => status)).toEqual(['rejected', 'rejected']);
    await turn();
    expect(store.asked).toEqual([
      ['a', 'b'],
      ['c', 'a'],
    ]);
    store.answer();
    expect(await Promise.all(second)).toEqual([null, null, null]);
    const third = deliveries.get('d');
    await turn();
    store.answer();
    expect(await third).toBeNull();
  });
});
