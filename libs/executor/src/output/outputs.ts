/**
 * What a stage publishes, read from the file that `$SERVICE_OUTPUT` names: lines `key=value`, or for longer values
 *
 *     key<<EOF
 *     any lines
 *     EOF
 *
 * Empty lines are skipped; a later value of a name replaces an earlier one.
 */
import { closeSync, constants, fstatSync, lstatSync, openSync, readSync } from 'node:fs';
import { systemReason } from '@penstock/errors';
import { BadOutputs } from '../contract/errors.ts';

const OUTPUT_BYTES_MAX = 64 * 1024;
/** Of the file: values, and room for names, delimiters and values that were replaced. */
const FILE_BYTES_MAX = 4 * OUTPUT_BYTES_MAX;
const OUTPUT_NAME = /^[A-Za-z_][A-Za-z0-9_-]*$/;

export interface StageOutputs {
  readonly outputs: Readonly<Record<string, string>>;
  /** A sentence each, for the stage's log. */
  readonly warnings: readonly string[];
}

/** Names that are not among `declared` are dropped with a warning. A missing file is no output. Throws BadOutputs. */
export function readOutputs(path: string, declared: readonly string[]): StageOutputs {
  const text = readText(path);
  if (text === null) return { outputs: {}, warnings: [] };
  const outputs = new Map<string, string>();
  const undeclared = new Set<string>();
  for (const [name, value] of parse(text)) {
    if (declared.includes(name)) outputs.set(name, value);
    else undeclared.add(name);
  }
  let bytes = 0;
  for (const [name, value] of outputs) bytes += name.length + Buffer.byteLength(value);
  if (bytes > OUTPUT_BYTES_MAX)
    throw new BadOutputs(`the stage's outputs take ${bytes} bytes; ${OUTPUT_BYTES_MAX} are kept`, 0);
  const warnings = [...undeclared]
    .slice(0, 10)
    .map((name) => `the output '${name}' is dropped: the stage does not declare it under 'outputs'`);
  return { outputs: Object.fromEntries(outputs), warnings };
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
      throw new BadOutputs(`the output '${name}' holds a NUL byte, which no later stage could be given`, number);
    yield [name, value];
  }
}

/** Null where there is no file. The stage may have put anything at the path: nothing is followed or waited for. */
function readText(path: string): string | null {
  // The usual case, and an exception is the dearer answer.
  let fd: number;
  try {
    if (lstatSync(path, { throwIfNoEntry: false }) === undefined) return null;
    fd = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT') return null;
    // The answer to a link that is not to be followed is the one to links that lead in a circle.
    if (code === 'ELOOP') throw new BadOutputs('$SERVICE_OUTPUT is a link, which is not followed', 0);
    throw new BadOutputs(`$SERVICE_OUTPUT cannot be read: ${systemReason(error)}`, 0);
  }
  try {
    const { size } = fstatSync(fd);
    if (!fstatSync(fd).isFile()) throw new BadOutputs('$SERVICE_OUTPUT is no file any more', 0);
    if (size > FILE_BYTES_MAX)
      throw new BadOutputs(`$SERVICE_OUTPUT holds ${size} bytes; ${FILE_BYTES_MAX} are read`, 0);
    const buffer = Buffer.alloc(size);
    return buffer.toString('utf8', 0, readSync(fd, buffer, 0, size, 0));
  } finally {
    closeSync(fd);
  }
}

function shorten(text: string): string {
  return JSON.stringify(text.length > 60 ? `${text.slice(0, 60)}…` : text);
}
