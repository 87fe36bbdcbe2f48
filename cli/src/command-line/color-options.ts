/** The options on colour that several commands share. */
import type { ParsedArguments } from './command.ts';
import type { ColorWish } from '../output/terminal.ts';

export const COLOR_OPTIONS = {
  color: { type: 'boolean', text: 'Colours also where the output is no terminal.' },
  'no-color': { type: 'boolean', text: 'No colours; the variable NO_COLOR does the same.' },
} as const;

export function colorWish(args: ParsedArguments): ColorWish {
  return { color: args.flag('color'), noColor: args.flag('no-color') };
}
