/** `--input name=value`, of the commands that start a run. */
import { UsageError } from '../process/errors.ts';
import { printableText } from '../output/printable-text.ts';
import type { OptionSpec, ParsedArguments } from './command.ts';

export const INPUT_OPTIONS: Readonly<Record<string, OptionSpec>> = {
  input: {
    type: 'string',
    short: 'i',
    value: 'NAME=VALUE',
    text: 'A value for an input that the file declares; may be given several times.',
  },
};

/** By name, in the order given. What stands in arguments can be read by others on this machine: no place for secrets. */
export function inputValues(args: ParsedArguments, command: string): Map<string, string> {
  const values = new Map<string, string>();
  for (const text of args.texts('input')) {
    const at = text.indexOf('=');
    if (at < 1) throw new UsageError(`--input needs NAME=VALUE, not '${printableText(text)}'`, command);
    const name = text.slice(0, at);
    if (values.has(name)) throw new UsageError(`--input '${printableText(name)}' is given twice`, command);
    values.set(name, text.slice(at + 1));
  }
  return values;
}

/** The refusal of values that do not fit what the file declares; of one that is missing it says how to give it. */
export function badInput(
  { name, message }: { readonly name?: string | undefined; readonly message: string },
  given: ReadonlyMap<string, string>,
  command: string,
): UsageError {
  const isMissing = name !== undefined && !given.has(name);
  return new UsageError(isMissing ? `${message}; give it with --input ${name}=VALUE` : message, command);
}
