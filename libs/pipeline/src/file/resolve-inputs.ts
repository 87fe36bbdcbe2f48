/** The inputs of a run: what was given, checked against what the pipeline declares, and the defaults for the rest. */
import type { InputDefinition, PipelineDefinition } from '../model/definition.ts';
import { PIPELINE_LIMITS } from '../model/limits.ts';
import { quoted } from '../text/printable.ts';
import { didYouMean } from '../text/suggest.ts';
import { utf8Length } from '../text/text-position.ts';
import { inputFault } from './inputs.ts';

export type ResolvedInputs =
  | { readonly ok: true; readonly values: Readonly<Record<string, string>> }
  /** `name`: the input at fault; absent where it is all of them together. */
  | { readonly ok: false; readonly name?: string | undefined; readonly message: string };

/**
 * A value for every input that the pipeline declares, in the order of the file. An input that is neither given nor has a
 * default is the empty text, unless it is required. Resolving again what came out changes nothing.
 */
export function resolveInputs(
  { inputs = [] }: Pick<PipelineDefinition, 'inputs'>,
  given: ReadonlyMap<string, string>,
): ResolvedInputs {
  for (const name of given.keys()) if (!inputs.some((input) => input.name === name)) return unknownInput(name, inputs);
  const values = Object.create(null) as Record<string, string>;
  for (const input of inputs) {
    const { name } = input;
    const value = given.get(name);
    if (value === undefined && input.required)
      return {
        ok: false,
        name,
        message: `the input ${quoted(name)} is required${input.description === '' ? '' : ` (${input.description})`}`,
      };
    const fault = value === undefined ? undefined : valueFault(input, value);
    if (fault !== undefined) return { ok: false, name, message: `the input ${quoted(name)} ${fault}` };
    values[name] = value ?? input.default ?? '';
  }
  const text = Object.values(values).join('');
  if (utf8Length(text, PIPELINE_LIMITS.inputsBytesMax) > PIPELINE_LIMITS.inputsBytesMax)
    return {
      ok: false,
      message: `the values of all inputs take more than ${PIPELINE_LIMITS.inputsBytesMax / 1024} KiB`,
    };
  return { ok: true, values };
}

function valueFault(input: InputDefinition, value: string): string | undefined {
  if (utf8Length(value, PIPELINE_LIMITS.envValueBytesMax) > PIPELINE_LIMITS.envValueBytesMax)
    return `is longer than ${PIPELINE_LIMITS.envValueBytesMax / 1024} KiB`;
  if (value.includes('\0')) return 'holds a NUL character, which no variable can';
  // What it is without being given.
  if (value === '' && input.default === undefined && !input.required) return undefined;
  const fault = inputFault(input, value);
  return fault && [fault.message, fault.suggestion].filter((part) => part !== undefined).join('; ');
}

function unknownInput(name: string, inputs: readonly InputDefinition[]): ResolvedInputs {
  const names = inputs.map((input) => input.name);
  const hint =
    didYouMean(name, names) ??
    (names.length === 0
      ? 'it takes none'
      : `it takes ${names.slice(0, 10).join(', ')}${names.length > 10 ? ', …' : ''}`);
  return { ok: false, name, message: `the pipeline has no input ${quoted(name)}; ${hint}` };
}
