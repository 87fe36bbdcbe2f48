/**
 * The subjects of the bus: who listens on which, and what is sent there, as text. Processes know each other through nothing else.
 * It loses, delays, doubles and reorders as the network does; what nobody listens to has no responders.
 */
import type { RemoteError } from '@penstock/bus';
import type { Network } from './network.ts';
import type { SimNode } from './sim-node.ts';
import type { World } from './world.ts';

type Reply =
  | { readonly kind: 'reply'; readonly text: string }
  | { readonly kind: 'failed'; readonly failure: RemoteError['failure'] };

/** `silence`: nothing in time. `away`: the sender has no connection, and knows it. */
export type Answer = Reply | { readonly kind: 'no-responders' | 'silence' | 'away' };

/** `reply` where an answer is asked for. */
type Receive = (text: string, subject: string, reply: (reply: Reply) => void) => void;

interface Listener {
  readonly node: SimNode;
  readonly life: number;
  readonly tokens: readonly string[];
  readonly receive: Receive;
  /** Of those with one name a request goes to any one. */
  readonly queue: string | undefined;
  stopped: boolean;
}

/** After this the broker has noticed that a connection is cut; until then what is sent there is lost. */
const CUT_NOTICED_MS = 3_000;

export class Exchange {
  readonly #network: Network;
  readonly #world: World;
  /** By the first token of what they listen to. */
  readonly #listeners = new Map<string, Listener[]>();

  constructor(network: Network) {
    this.#network = network;
    this.#world = network.world;
  }

  /** `subject` may have `*` for a token, and `>` at its end. */
  listen(node: SimNode, subject: string, receive: Receive, queue?: string): { stop(): void } {
    const tokens = subject.split('.');
    const listener: Listener = { node, life: node.life, tokens, receive, queue, stopped: false };
    const first = tokens[0] ?? '';
    const others = (this.#listeners.get(first) ?? []).filter((other) => isThere(other));
    this.#listeners.set(first, [...others, listener]);
    return {
      stop: () => {
        listener.stopped = true;
      },
    };
  }

  publish(from: SimNode, subject: string, text: string): void {
    for (const listener of this.#of(subject))
      this.#network.send(from, listener.node, () => {
        if (isThere(listener)) listener.receive(text, subject, () => {});
      });
  }

  /** Calls back once, in a turn of the sender. The first answer counts. */
  request(from: SimNode, subject: string, text: string, timeoutMs: number, done: (answer: Answer) => void): void {
    const world = this.#world;
    const { life } = from;
    let settled = false;
    const settle = (answer: Answer): void =>
      from.handle(life, () => {
        if (settled) return;
        settled = true;
        done(answer);
      });
    from.after(timeoutMs, () => settle({ kind: 'silence' }));
    if (!this.#network.isOpen(from)) {
      // A wire that is cut is noticed late.
      if (world.random.chance(0.5)) from.after(1, () => settle({ kind: 'away' }));
      return;
    }
    if (world.drops(world.profile.lost)) return;
    world.after(world.latency(), () => {
      if (!this.#network.broker.up) return;
      const responders = this.#oneOfQueue(this.#of(subject).filter(({ node }) => !this.#isNoticed(node)));
      if (responders.length === 0)
        world.after(world.latency(), () => {
          if (this.#network.isOpen(from)) settle({ kind: 'no-responders' });
        });
      if (responders.length > 1) world.mark('two owners listen');
      for (const responder of responders)
        this.#network.send(responder.node, responder.node, () => {
          if (!isThere(responder)) return;
          responder.receive(text, subject, (reply) => this.#network.send(responder.node, from, () => settle(reply)));
        });
    });
  }

  /** Whether somebody would get a request. */
  hasListener(subject: string): boolean {
    return this.#of(subject).length > 0;
  }

  #of(subject: string): Listener[] {
    const tokens = subject.split('.');
    return (this.#listeners.get(tokens[0] ?? '') ?? []).filter(
      (listener) => isThere(listener) && matches(listener.tokens, tokens),
    );
  }

  #oneOfQueue(listeners: Listener[]): Listener[] {
    return listeners.length < 2 || listeners[0]?.queue === undefined ? listeners : [this.#world.random.pick(listeners)];
  }

  #isNoticed(node: SimNode): boolean {
    return !node.linked && this.#world.now - node.cutAt > CUT_NOTICED_MS;
  }
}

function isThere({ node, life, stopped }: Listener): boolean {
  return !stopped && node.alive && node.life === life;
}

function matches(pattern: readonly string[], subject: readonly string[]): boolean {
  for (let index = 0; index < pattern.length; index++) {
    if (pattern[index] === '>') return subject.length > index;
    if (pattern[index] !== '*' && pattern[index] !== subject[index]) return false;
  }
  return pattern.length === subject.length;
}
