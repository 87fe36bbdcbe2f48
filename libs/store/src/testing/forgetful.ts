/** A store as MongoDB's is where the first answer to a deletion was lost: at the next try there was none any more (ADR 8). */
import type { Collection, DocumentStore } from '../port.ts';

export function forgetful(store: DocumentStore): DocumentStore {
  const collection: DocumentStore['collection'] = (spec) => {
    const real = store.collection(spec);
    const lost: Pick<Collection<typeof spec>, 'delete'> = {
      delete: async (id, where) => (await real.delete(id, where)) && real.delete(id, where),
    };
    return new Proxy(real, {
      get: (of, name) => {
        const value: unknown = name === 'delete' ? lost.delete : Reflect.get(of, name);
        return typeof value === 'function' ? value.bind(of) : value;
      },
    });
  };
  return { collection, ping: () => store.ping(), close: () => store.close() };
}
