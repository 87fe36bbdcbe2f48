/** A page of text that is shown again as it changes: on a terminal in its own place, elsewhere below the one before. */
import type { Terminal } from './terminal.ts';

const UP = (lines: number): string => `\u001b[${lines}A\r`;
const CLEAR_BELOW = '\u001b[J';

export class LivePage {
  readonly #terminal: Terminal;
  #height = 0;
  #state: string | undefined;

  constructor(terminal: Terminal) {
    this.#terminal = terminal;
  }

  /** `state` says whether the page has changed enough to be printed anew where it cannot be drawn over. */
  show(lines: readonly string[], state: string): void {
    const isFirst = this.#state === undefined;
    if (!isFirst && !this.#terminal.outIsTerminal && state === this.#state) return;
    this.#state = state;
    const text = `${lines.join('\n')}\n`;
    const before = isFirst ? '' : this.#terminal.outIsTerminal ? `${UP(this.#height)}${CLEAR_BELOW}` : '\n';
    this.#height = lines.length;
    this.#terminal.print(before + text);
  }
}
