/** A store of MongoDB behind a proxy, for one test: opened, broken, healed, dropped. */
import {
  openMongoStore,
  type Collection,
  type CollectionSpec,
  type DocumentOf,
  type DocumentStore,
} from '../src/index.ts';
import { startMongoProxy, type MongoProxy, type TestMongoServer } from './mongodb/index.ts';

export const spec = {
  name: 'things',
  fields: { owner: 'string', rank: 'integer', major: 'integer', minor: 'integer' },
  parts: ['text'],
  indexes: [['owner'], ['rank']],
  version: ['major', 'minor'],
} as const satisfies CollectionSpec;
export type Thing = DocumentOf<typeof spec>;

export function thing(id: string, some: Partial<Thing> = {}): Thing {
  return { id, owner: 'me', rank: 0, major: 0, minor: 0, text: '', ...some };
}

export function numbered(count: number, some: Partial<Thing> = {}): Thing[] {
  return Array.from({ length: count }, (_, index) =>
    thing(`n-${String(index).padStart(3, '0')}`, { rank: index % 5, ...some }),
  );
}

export class MongoPlace {
  readonly proxy: MongoProxy;
  /** Past the proxy. */
  readonly directUrl: string;
  readonly url: string;
  readonly #drop: () => Promise<void>;
  readonly #opened: DocumentStore[] = [];

  private constructor(proxy: MongoProxy, directUrl: string, drop: () => Promise<void>) {
    this.proxy = proxy;
    this.directUrl = directUrl;
    const url = new URL(directUrl);
    url.host = `127.0.0.1:${proxy.port}`;
    this.url = url.href;
    this.#drop = drop;
  }

  static async make(server: TestMongoServer): Promise<MongoPlace> {
    const database = server.freshDatabase();
    return new MongoPlace(await startMongoProxy(server), database.url, database.drop);
  }

  async open(
    options: { readonly deadlineMs?: number; readonly collections?: readonly CollectionSpec[] } = {},
  ): Promise<DocumentStore> {
    const store = await openMongoStore({
      url: this.url,
      collections: options.collections ?? [spec],
      deadlineMs: options.deadlineMs,
    });
    this.#opened.push(store);
    return store;
  }

  async things(
    deadlineMs?: number,
  ): Promise<{ readonly store: DocumentStore; readonly things: Collection<typeof spec> }> {
    const store = await this.open(deadlineMs === undefined ? {} : { deadlineMs });
    this.proxy.takeCommands();
    return { store, things: store.collection(spec) };
  }

  async remove(): Promise<void> {
    await this.proxy.heal();
    await Promise.all(this.#opened.map((store) => store.close()));
    await this.proxy.stop();
    await this.#drop();
  }
}
