/** Puts colours around texts, where colours are wanted. */

const CODES = {
  bold: '1',
  dim: '2',
  red: '1;31',
  green: '32',
  yellow: '33',
  blue: '34',
  magenta: '35',
  cyan: '36',
} as const;
export type Color = keyof typeof CODES;

export type Painter = (color: Color, text: string) => string;

export const RESET = '\u001b[0m';

export function painter(enabled: boolean): Painter {
  return enabled ? (color, text) => `\u001b[${CODES[color]}m${text}${RESET}` : (_color, text) => text;
}

/** The stages take these one after the other; red is for what went wrong. */
export const STAGE_COLORS: readonly Color[] = ['cyan', 'yellow', 'green', 'magenta', 'blue'];
