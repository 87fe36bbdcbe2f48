/** The options on colour that several commands share. */
import type { ParsedArguments } from './command.ts';
import type { ColorChoice } from '../output/terminal.ts';

export const COLOR_OPTIONS = {
  color: { type: 'boolean', text: 'Colours also where the output is no terminal.' },
  'no-color': { type: 'boolean', text: 'No colours; the variable NO_COLOR does the same.' },
} as const;

export function colorChoice(args: ParsedArguments): ColorChoice {
  return { color: args.flag('color'), noColor: args.flag('no-color') };
}
