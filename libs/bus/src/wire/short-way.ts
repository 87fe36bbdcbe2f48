/**
 * The way of requests that a process asks of itself, and of their answers: from its memory to its memory, past the broker. A message is
 * what it would be on the wire, its bytes included, and is lost with the connection like any other; who sends and who answers know
 * nothing of it.
 *
 * SHORTWAY-1 A message is handled in a later turn of the event loop, in the order of sending, and in nobody's context.
 * SHORTWAY-2 Only who answers every request to its subject is found here: those who share their work are the broker's to choose from.
 */
import { AsyncLocalStorage } from 'node:async_hooks';
import type { MsgHdrs } from '@nats-io/transport-node';

export interface WireMessage {
  readonly subject: string;
  readonly data: Uint8Array;
  readonly headers?: MsgHdrs | undefined;
  readonly reply?: string | undefined;
}

interface Answering {
  readonly tokens: readonly string[];
  readonly receive: (message: WireMessage) => void;
  isOver: boolean;
}

export class ShortWay {
  readonly #inbox: string;
  readonly #receive: (message: WireMessage) => void;
  readonly #answering = new Set<Answering>();
  /** Who answers on which subject, as far as somebody has asked. */
  readonly #found = new Map<string, readonly Answering[]>();
  readonly #underWay: { readonly to: readonly Answering[] | null; readonly message: WireMessage }[] = [];
  readonly #inNoContext = AsyncLocalStorage.snapshot();

  /** `inbox`: where the answers arrive, and who takes them there. */
  constructor(inbox: string, receive: (message: WireMessage) => void) {
    this.#inbox = inbox;
    this.#receive = receive;
  }

  /** Requests to the subject, wildcards allowed, go to `receive`. */
  answer(subject: string, receive: (message: WireMessage) => void): { stop(): void } {
    const answering: Answering = { tokens: subject.split('.'), receive, isOver: false };
    this.#answering.add(answering);
    this.#found.clear();
    return {
      stop: () => {
        answering.isOver = true;
        this.#answering.delete(answering);
        this.#found.clear();
      },
    };
  }

  /** False: nobody here takes it. */
  carry(message: WireMessage): boolean {
    if (message.subject.startsWith(this.#inbox)) {
      this.#send(null, message);
      return true;
    }
    if (message.reply === undefined || this.#answering.size === 0) return false;
    const to = this.#whoAnswers(message.subject);
    if (to.length > 0) this.#send(to, message);
    return to.length > 0;
  }

  #whoAnswers(subject: string): readonly Answering[] {
    let found = this.#found.get(subject);
    if (found === undefined) {
      if (this.#found.size >= FOUND_MAX) this.#found.clear();
      const tokens = subject.split('.');
      found = [...this.#answering].filter((each) => matches(each.tokens, tokens));
      this.#found.set(subject, found);
    }
    return found;
  }

  /** SHORTWAY-1. */
  #send(to: readonly Answering[] | null, message: WireMessage): void {
    this.#underWay.push({ to, message });
    if (this.#underWay.length === 1) setImmediate(() => this.#inNoContext(() => this.#arrive()));
  }

  #arrive(): void {
    for (const { to, message } of this.#underWay.splice(0)) {
      if (to === null) this.#receive(message);
      else for (const each of to) if (!each.isOver) each.receive(message);
    }
  }
}

/** Subjects of slips and of others' runners are many, and each is asked about seldom. */
const FOUND_MAX = 1_000;

function matches(pattern: readonly string[], subject: readonly string[]): boolean {
  for (const [index, token] of pattern.entries()) {
    if (token === '>') return subject.length > index;
    if (token !== '*' && token !== subject[index]) return false;
    if (index >= subject.length) return false;
  }
  return pattern.length === subject.length;
}
