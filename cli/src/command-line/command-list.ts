/** The commands as a list: what the dispatcher looks in, and what the help shows. */
import type { Command } from './command.ts';
import { nearestWord } from './nearest.ts';
import { UsageError } from '../process/errors.ts';
import { printableText } from '../output/printable-text.ts';

export interface CommandEntry {
  readonly name: string;
  readonly summary: string;
  readonly load: () => Promise<Command>;
}

export function commandNamed(commands: readonly CommandEntry[], name: string): CommandEntry | undefined {
  return commands.find((entry) => entry.name === name);
}

/** The refusal of a name that no command has; it names the nearest command, and all of them. */
export function unknownCommand(commands: readonly CommandEntry[], name: string): UsageError {
  const names = commands.map((entry) => entry.name).filter((known) => !known.includes(' '));
  const candidate = nearestWord(name, names);
  const hint = candidate === undefined ? '' : `, did you mean '${candidate}'?`;
  const what = name.startsWith('-') ? 'option' : 'command';
  return new UsageError(`there is no ${what} '${printableText(name)}'${hint}\nThe commands are ${names.join(', ')}.`);
}
