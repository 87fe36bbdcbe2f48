/**
 * Holds a run's past back until it is known to be past, and lets only its last lines through.
 *
 *  TAILGATE-1 What is let through is in the order in which it came, and everything that comes after the opening follows it.
 *  TAILGATE-2 At most `linesMax` lines and HELD_CHARACTERS_MAX characters of output are held.
 */
import type { PublicEvent } from '@penstock/run/public-events';

const HELD_CHARACTERS_MAX = 16 * 1024 * 1024;

export interface HeldEvent {
  readonly event: PublicEvent;
  /** As the server sent it. */
  readonly text: string;
}

export interface TailGateHandlers {
  show(held: HeldEvent): void;
  /** It is older than the lines that are shown. */
  passOver(event: PublicEvent): void;
}

export class TailGate {
  readonly #linesMax: number;
  readonly #handlers: TailGateHandlers;
  #held: HeldEvent[] | undefined = [];
  #from = 0;
  #lines = 0;
  #characters = 0;

  constructor(linesMax: number, handlers: TailGateHandlers) {
    this.#linesMax = linesMax;
    this.#handlers = handlers;
  }

  take(held: HeldEvent): void {
    if (this.#held === undefined) {
      this.#handlers.show(held);
      return;
    }
    this.#held.push(held);
    if (held.event.type !== 'stage_log') return;
    this.#lines += 1;
    this.#characters += held.text.length;
    while (this.#lines > this.#linesMax || this.#characters > HELD_CHARACTERS_MAX) this.#drop(this.#held);
  }

  open(): void {
    const held = this.#held ?? [];
    this.#held = undefined;
    for (const each of held.slice(this.#from)) this.#handlers.show(each);
  }

  #drop(held: HeldEvent[]): void {
    const oldest = held[this.#from];
    this.#from += 1;
    if (oldest?.event.type === 'stage_log') {
      this.#lines -= 1;
      this.#characters -= oldest.text.length;
    }
    if (oldest !== undefined) this.#handlers.passOver(oldest.event);
    if (this.#from > 1024 && this.#from * 2 > held.length) {
      held.splice(0, this.#from);
      this.#from = 0;
    }
  }
}
