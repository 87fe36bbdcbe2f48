/**
 * What a stage publishes, read from the file that `$SERVICE_OUTPUT` names: lines `key=value`, or for longer values
 *
 *     key<<EOF
 *     any lines
 *     EOF
 *
 * Empty lines are skipped; a later value of a name replaces an earlier one.
 */
import { BadOutputs, TooLargeOutputs } from '../contract/errors.ts';
import { readStageFile } from './stage-file.ts';

/** Of names and values in UTF-8. No more than as many UTF-16 units, which are what a run counts. */
const OUTPUT_BYTES_MAX = 64 * 1024;
/** Of the file: values, and room for names, delimiters and values that were replaced. */
const FILE_BYTES_MAX = 4 * OUTPUT_BYTES_MAX;
const OUTPUT_NAME = /^[A-Za-z_][A-Za-z0-9_-]*$/;

export interface StageOutputs {
  readonly outputs: Readonly<Record<string, string>>;
  /** A sentence each, for the stage's log. */
  readonly warnings: readonly string[];
  /** False: nothing is at the path. */
  readonly isThere: boolean;
}

/** Names that are not among `declared` are dropped with a warning. A missing file is no output. Throws BadOutputs. */
export function readOutputs(path: string, declared: readonly string[]): StageOutputs {
  const text = readStageFile(path, '$SERVICE_OUTPUT', FILE_BYTES_MAX);
  if (text === null) return { outputs: {}, warnings: [], isThere: false };
  const outputs = new Map<string, string>();
  const undeclared = new Set<string>();
  for (const [name, value] of parse(text)) {
    if (declared.includes(name)) outputs.set(name, value);
    else undeclared.add(name);
  }
  let bytes = 0;
  for (const [name, value] of outputs) bytes += name.length + Buffer.byteLength(value);
  if (bytes > OUTPUT_BYTES_MAX)
    throw new TooLargeOutputs(`the stage's outputs take ${bytes} bytes; ${OUTPUT_BYTES_MAX} are kept`);
  const warnings = [...undeclared]
    .slice(0, 10)
    .map((name) => `the output '${name}' is dropped: the stage does not declare it under 'outputs'`);
  return { outputs: Object.fromEntries(outputs), warnings, isThere: true };
}

function* parse(text: string): Iterable<[name: string, value: string]> {
  const lines = text.split('\n').map((line) => (line.endsWith('\r') ? line.slice(0, -1) : line));
  for (let index = 0; index < lines.length; index += 1) {
    const line = lines[index] ?? '';
    if (line === '') continue;
    const number = index + 1;
    const equals = line.indexOf('=');
    const heredoc = line.indexOf('<<');
    if (equals < 0 && heredoc < 0)
      throw new BadOutputs(
        `line ${number} of $SERVICE_OUTPUT is neither 'name=value' nor 'name<<END': ${shorten(line)}`,
        number,
      );
    const isHeredoc = heredoc >= 0 && (equals < 0 || heredoc < equals);
    const name = line.slice(0, isHeredoc ? heredoc : equals);
    if (!OUTPUT_NAME.test(name))
      throw new BadOutputs(
        `line ${number} of $SERVICE_OUTPUT names an output ${shorten(name)}: a name is letters, digits, '_' and '-'`,
        number,
      );
    let value = line.slice(equals + 1);
    if (isHeredoc) {
      const end = line.slice(heredoc + 2);
      const close = end === '' ? -1 : lines.indexOf(end, index + 1);
      if (close < 0)
        throw new BadOutputs(
          `line ${number} of $SERVICE_OUTPUT opens '${name}<<${shorten(end)}', which no later line ends`,
          number,
        );
      value = lines.slice(index + 1, close).join('\n');
      index = close;
    }
    if (value.includes('\0'))
      throw new BadOutputs(
        `line ${number} of $SERVICE_OUTPUT: the output '${name}' holds a NUL byte, which no later stage could be given`,
        number,
      );
    yield [name, value];
  }
}

function shorten(text: string): string {
  return JSON.stringify(text.length > 60 ? `${text.slice(0, 60)}…` : text);
}
