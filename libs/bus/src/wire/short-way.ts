/**
 * The way of requests that a process asks of itself, and of their answers: from its memory to its memory, past the broker, within a thread
 * or to another one (`linkThreads`). A message is what it would be on the wire, its bytes included, and is lost with the connection like
 * any other; who sends and who answers know nothing of it.
 *
 * SHORTWAY-1 A message is handled in a later turn of the event loop, in the order of sending, and in nobody's context.
 * SHORTWAY-2 Only who answers every request to its subject is found here: those who share their work are the broker's to choose from.
 * SHORTWAY-3 What a thread sends to a responder of its own is handled in the order of sending, across a loss of the broker's connection too: while
 *     the responder is there, none of it goes another way. Between two threads the order is not kept (THREADLINE-1), nor is it
 *     between two senders.
 */
import { AsyncLocalStorage } from 'node:async_hooks';
import type { MsgHdrs } from '@nats-io/transport-node';

export interface WireMessage {
  readonly subject: string;
  readonly data: Uint8Array;
  readonly headers?: MsgHdrs | undefined;
  readonly reply?: string | undefined;
}

/** Throws nothing: what arrives together is handled one after the other, and each costs itself alone (`Wire.received`). */
type Receive = (message: WireMessage) => void;

/** To the short way of another thread. */
export interface Line {
  /** Where the answers of that thread's requests arrive. */
  readonly inbox: string;
  /** False: it is to go by the broker. */
  carry(message: WireMessage): boolean;
  /** Requests to the subject are answered here, from now on or no more. */
  tell(subject: string, isAnswered: boolean): void;
}

interface Answering {
  readonly subject: string;
  readonly tokens: readonly string[];
  readonly receive: Receive;
  isOver: boolean;
}

interface Takers {
  readonly own: readonly Answering[];
  readonly line: Line | undefined;
}

/** Subjects of slips and of others' runners are many, and each is asked about seldom. */
const FOUND_MAX = 1_000;

export class ShortWay {
  readonly inbox: string;
  readonly #receive: Receive;
  readonly #answering = new Set<Answering>();
  /** What the other threads answer. */
  readonly #lines = new Map<Line, Map<string, readonly string[]>>();
  /** Who takes the messages to a subject, as far as somebody has asked. */
  readonly #found = new Map<string, Takers>();
  readonly #underWay: (() => void)[] = [];
  readonly #inNoContext = AsyncLocalStorage.snapshot();

  /** `inbox`: where the answers arrive, and who takes them there. */
  constructor(inbox: string, receive: Receive) {
    this.inbox = inbox;
    this.#receive = receive;
  }

  /** Requests to the subject, wildcards allowed, go to `receive`. */
  answer(subject: string, receive: Receive): { stop(): void } {
    const answering: Answering = { subject, tokens: subject.split('.'), receive, isOver: false };
    this.#answering.add(answering);
    this.#tell(subject, true);
    return {
      stop: () => {
        answering.isOver = true;
        this.#answering.delete(answering);
        if (![...this.#answering].some((other) => other.subject === subject)) this.#tell(subject, false);
        this.#found.clear();
      },
    };
  }

  #tell(subject: string, isAnswered: boolean): void {
    this.#found.clear();
    for (const line of this.#lines.keys()) line.tell(subject, isAnswered);
  }

  /** False: nobody here takes it. */
  carry(message: WireMessage): boolean {
    const { subject, reply } = message;
    if (subject.startsWith(this.inbox)) {
      this.#soon(() => this.#receive(message));
      return true;
    }
    if (reply === undefined) {
      for (const line of this.#lines.keys()) if (subject.startsWith(line.inbox)) return line.carry(message);
      return false;
    }
    const { own, line } = this.#takersOf(subject);
    if (line !== undefined) return line.carry(message);
    for (const each of own)
      this.#soon(() => {
        if (!each.isOver) each.receive(message);
      });
    return own.length > 0;
  }

  /** What a line brings: an answer, or a request that is answered here. */
  arrive(message: WireMessage): void {
    this.#inNoContext(() => {
      if (message.subject.startsWith(this.inbox)) this.#receive(message);
      else for (const each of this.#ownOf(message.subject.split('.'))) each.receive(message);
    });
  }

  /** It is told what is answered here. */
  link(line: Line): { answers(subject: string, isAnswered: boolean): void; end(): void } {
    const subjects = new Map<string, readonly string[]>();
    this.#lines.set(line, subjects);
    for (const subject of new Set([...this.#answering].map((each) => each.subject))) line.tell(subject, true);
    return {
      answers: (subject, isAnswered) => {
        if (isAnswered) subjects.set(subject, subject.split('.'));
        else subjects.delete(subject);
        this.#found.clear();
      },
      end: () => {
        this.#lines.delete(line);
        this.#found.clear();
      },
    };
  }

  /** Whoever answers in this thread, else the thread that does. */
  #takersOf(subject: string): Takers {
    let found = this.#found.get(subject);
    if (found === undefined) {
      if (this.#found.size >= FOUND_MAX) this.#found.clear();
      const tokens = subject.split('.');
      const own = this.#ownOf(tokens);
      const answers = (patterns: ReadonlyMap<string, readonly string[]>): boolean =>
        [...patterns.values()].some((pattern) => matches(pattern, tokens));
      const line = own.length > 0 ? undefined : [...this.#lines].find(([, patterns]) => answers(patterns))?.[0];
      found = { own, line };
      this.#found.set(subject, found);
    }
    return found;
  }

  #ownOf(subject: readonly string[]): Answering[] {
    return [...this.#answering].filter(({ tokens }) => matches(tokens, subject));
  }

  /** SHORTWAY-1. */
  #soon(work: () => void): void {
    this.#underWay.push(work);
    if (this.#underWay.length > 1) return;
    setImmediate(() =>
      this.#inNoContext(() => {
        for (const each of this.#underWay.splice(0)) each();
      }),
    );
  }
}

function matches(pattern: readonly string[], subject: readonly string[]): boolean {
  for (const [index, token] of pattern.entries()) {
    if (token === '>') return subject.length > index;
    if (index >= subject.length || (token !== '*' && token !== subject[index])) return false;
  }
  return pattern.length === subject.length;
}
