/** A page of text that is shown again as it changes: on a terminal in its own place, elsewhere below the one before. */
import { cellsOf } from './printable-text.ts';
import type { Terminal } from './terminal.ts';

const UP = (lines: number): string => `\u001b[${lines}A\r`;
const CLEAR_BELOW = '\u001b[J';
// oxlint-disable-next-line no-control-regex
const COLORS = /\u001b\[[0-9;]*m/gu;

export class LivePage {
  readonly #terminal: Pick<Terminal, 'outIsTerminal' | 'print' | 'width'>;
  #height = 0;
  #state: string | undefined;

  constructor(terminal: Pick<Terminal, 'outIsTerminal' | 'print' | 'width'>) {
    this.#terminal = terminal;
  }

  /** `state` says whether the page has changed enough to be printed anew where it cannot be drawn over. */
  show(lines: readonly string[], state: string): void {
    const isFirst = this.#state === undefined;
    if (!isFirst && !this.#terminal.outIsTerminal && state === this.#state) return;
    this.#state = state;
    const text = `${lines.join('\n')}\n`;
    const before = isFirst ? '' : this.#terminal.outIsTerminal ? `${UP(this.#height)}${CLEAR_BELOW}` : '\n';
    const width = this.#terminal.width() || Infinity;
    // A line that is longer than the screen is wide, for a name without a space perhaps, takes several of its rows.
    const rowsOf = (line: string): number => Math.max(1, Math.ceil(cellsOf(line.replace(COLORS, '')) / width));
    this.#height = lines.reduce((rows, line) => rows + rowsOf(line), 0);
    this.#terminal.print(before + text);
  }
}
