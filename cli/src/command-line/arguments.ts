/** Reads a command's arguments by its own description of them; what it cannot read it names, with the nearest thing it knows. */
import { parseArgs } from 'node:util';
import type { CommandSpec, OptionSpec, ParsedArguments } from './command.ts';
import { UsageError } from '../process/errors.ts';
import { nearestWord } from './nearest.ts';
import { printableText } from '../output/printable-text.ts';

/** Every command takes these beside its own. */
export const COMMON_OPTIONS: Readonly<Record<string, OptionSpec>> = {
  help: { type: 'boolean', short: 'h', text: 'Show this help.' },
};

export function readArguments(spec: CommandSpec, raw: readonly string[]): ParsedArguments {
  const options = new Map(Object.entries({ ...spec.options, ...COMMON_OPTIONS }));
  const { tokens } = parseArgs({
    args: [...raw],
    options: Object.fromEntries(
      [...options].map(([name, { type, short }]) => [name, { type, ...(short === undefined ? {} : { short }) }]),
    ),
    strict: false,
    allowPositionals: true,
    tokens: true,
  });
  const values = new Map<string, (string | true)[]>();
  const positionals: string[] = [];
  for (const token of tokens) {
    if (token.kind === 'positional') positionals.push(token.value);
    if (token.kind !== 'option') continue;
    const option = options.get(token.name);
    if (option === undefined) throw unknownOption(spec, token.rawName, [...options.keys()]);
    if (option.type === 'boolean' && token.value !== undefined)
      throw new UsageError(`${token.rawName} takes no value`, spec.name);
    if (option.type === 'string' && (token.value === undefined || isOptionLike(token))) {
      throw new UsageError(`${token.rawName} needs a value: ${token.rawName} ${option.value ?? 'VALUE'}`, spec.name);
    }
    values.set(token.name, [...(values.get(token.name) ?? []), token.value ?? true]);
  }
  const textsOf = (name: string): readonly string[] => (values.get(name) ?? []).filter((value) => value !== true);
  const parsed: ParsedArguments = {
    positionals,
    raw,
    flag: (name) => values.get(name)?.at(-1) === true,
    text: (name) => textsOf(name).at(-1),
    texts: textsOf,
  };
  if (!parsed.flag('help')) checkPositionals(spec, positionals);
  return parsed;
}

/** A whole number of at least `min`, or a UsageError that names the option. */
export function wholeNumber(
  spec: CommandSpec,
  option: string,
  text: string,
  bounds: { readonly min: number; readonly max: number },
): number {
  const value = /^\d{1,9}$/.test(text) ? Number(text) : Number.NaN;
  if (!(value >= bounds.min && value <= bounds.max)) {
    throw new UsageError(
      `--${option} must be a whole number from ${bounds.min} to ${bounds.max}, not '${printableText(text)}'`,
      spec.name,
    );
  }
  return value;
}

/** `--server --json` is a forgotten value, `--server=--json` is meant. */
function isOptionLike(token: {
  readonly value?: string | undefined;
  readonly inlineValue?: boolean | undefined;
}): boolean {
  return token.inlineValue !== true && token.value !== undefined && /^-./.test(token.value);
}

function unknownOption(spec: CommandSpec, rawName: string, known: readonly string[]): UsageError {
  const candidate = rawName.startsWith('--') ? nearestWord(rawName.slice(2), known) : undefined;
  const hint = candidate === undefined ? '' : `; did you mean --${candidate}?`;
  return new UsageError(`'${spec.name}' has no option ${printableText(rawName)}${hint}`, spec.name);
}

function checkPositionals(spec: CommandSpec, positionals: readonly string[]): void {
  const { min, max, missing } = spec.positionals;
  if (positionals.length < min) throw new UsageError(missing, spec.name);
  const extra = positionals[max];
  if (extra !== undefined)
    throw new UsageError(`'${spec.name}' takes no further argument '${printableText(extra)}'`, spec.name);
}
