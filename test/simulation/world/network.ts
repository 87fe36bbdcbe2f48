/** The ways between nodes, broker and store: messages are late, lost and doubled; requests and answers are lost each on their own. */
import type { Bucket, KvEntry, SimBroker } from './broker.ts';
import { SimOutage } from './errors.ts';
import type { SimNode } from './sim-node.ts';
import type { SimStorage } from './storage.ts';
import type { SimStore } from './store.ts';
import type { World } from './world.ts';

export class Network {
  readonly world: World;
  readonly broker: SimBroker;
  readonly store: SimStore;
  readonly storage: SimStorage;

  constructor(world: World, broker: SimBroker, store: SimStore, storage: SimStorage) {
    this.storage = storage;
    this.world = world;
    this.broker = broker;
    this.store = store;
  }

  /** Whether the node reaches the broker. */
  isOpen(node: SimNode): boolean {
    return this.broker.up && node.linked;
  }

  /** A message through the broker. Lost without any answer where the way is not open. */
  send(from: SimNode, to: SimNode, deliver: () => void): void {
    const { profile } = this.world;
    if (!this.isOpen(from) || this.world.drops(profile.lost)) {
      this.world.mark('message lost');
      return;
    }
    const arrive = (): void => {
      const { life } = to;
      if (this.isOpen(to)) to.handle(life, deliver);
    };
    this.world.after(this.world.latency(), arrive);
    if (this.world.drops(profile.duplicated)) {
      this.world.mark('message doubled');
      this.world.after(this.world.latency(), arrive);
    }
  }

  /** `done` gets undefined where there was no answer in time; the work may have been done all the same, or be done later. */
  askBroker<T>(
    node: SimNode,
    work: (broker: SimBroker) => T,
    timeoutMs: number,
    done: (answer: T | undefined) => void,
  ): void {
    const { profile } = this.world;
    let answered = false;
    const answer = (value: T | undefined): void => {
      if (answered) return;
      answered = true;
      done(value);
    };
    node.after(timeoutMs, () => answer(undefined));
    if (!this.isOpen(node) || this.world.drops(profile.requestLost)) return;
    const { life } = node;
    this.world.after(this.world.latency(), () => {
      if (!this.broker.up) return;
      const value = this.#done(work);
      if (value === undefined) return;
      if (this.world.drops(profile.answerLost)) {
        this.world.mark("broker's answer lost");
        return;
      }
      this.world.after(this.world.latency(), () => {
        if (this.isOpen(node)) node.handle(life, () => answer(value));
      });
    });
  }

  /** Undefined: the broker refuses it, which is for its sender as no answer is. */
  #done<T>(work: (broker: SimBroker) => T): T | undefined {
    try {
      return work(this.broker);
    } catch (error) {
      if (error instanceof SimOutage) return undefined;
      throw error;
    }
  }

  askStore<T>(
    node: SimNode,
    work: (store: SimStore) => T,
    done: (answer: T) => void,
    failed: (error: Error) => void,
  ): void {
    this.#askServer(node, this.store, 'store', work, done, failed);
  }

  /** Of the bytes of objects. */
  askStorage<T>(
    node: SimNode,
    work: (storage: SimStorage) => T,
    done: (answer: T) => void,
    failed: (error: Error) => void,
  ): void {
    this.#askServer(node, this.storage, 'object storage', work, done, failed);
  }

  #askServer<S extends { readonly up: boolean }, T>(
    node: SimNode,
    server: S,
    name: string,
    work: (server: S) => T,
    done: (answer: T) => void,
    failed: (error: Error) => void,
  ): void {
    const { profile, random } = this.world;
    const { life } = node;
    const fail = (why: string): void =>
      this.world.after(random.exponential(profile.storeLatencyMs), () =>
        node.handle(life, () => failed(new SimOutage(why))),
      );
    if (!node.linked || !server.up || this.world.drops(profile.storeFails / 2)) {
      fail(`the ${name} cannot be reached`);
      return;
    }
    this.world.after(random.exponential(profile.storeLatencyMs), () => {
      if (!server.up) {
        fail(`the ${name} has gone`);
        return;
      }
      const value = work(server);
      if (this.world.drops(profile.storeFails / 2)) {
        this.world.mark(`${name}'s answer lost`);
        fail(`the ${name} did not answer`);
        return;
      }
      this.world.after(random.exponential(profile.storeLatencyMs), () => node.handle(life, () => done(value)));
    });
  }

  keysNow(node: SimNode, bucket: Bucket): Promise<Map<string, KvEntry>> {
    return this.world.promise((resolve) => {
      const ask = (): void =>
        this.askBroker(
          node,
          (broker) => broker.all(bucket),
          2_000,
          (keys) => {
            if (keys === undefined) node.after(200, ask);
            else resolve(keys);
          },
        );
      ask();
    });
  }
}
