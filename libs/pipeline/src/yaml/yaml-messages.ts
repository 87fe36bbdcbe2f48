/** What the YAML package finds wrong, in the words of somebody who writes a pipeline file. */

export interface YamlProblem {
  readonly message: string;
  readonly suggestion?: string | undefined;
  /** How far behind the place that the package names the problem stands. */
  readonly shift: number;
}

const INDENTATION = 'indent the keys of a map alike, and those inside of one by two spaces more';

/** Undefined where the package's own words are as good as ours. */
export function yamlProblem(message: string, text: string, start: number): YamlProblem | undefined {
  if (message.startsWith('Nested mappings are not allowed in compact mappings')) return nestedProblem(text, start);
  if (message.startsWith('All mapping items must start at the same column')) {
    const spaces = /^ */.exec(text.slice(start, start + 200))?.[0].length ?? 0;
    return { message: 'this key is not indented like those before it', suggestion: INDENTATION, shift: spaces };
  }
  const open = /^Flow (sequence|map) in block collection must be/.exec(message)?.[1];
  if (open !== undefined) {
    const [from, to] = open === 'map' ? ['{', '}'] : ['[', ']'];
    return { message: `a '${from}' before this place is not closed`, suggestion: `close it by '${to}'`, shift: 0 };
  }
  if (message.startsWith('Implicit map keys need to be followed by map values'))
    return {
      message: 'this is neither a key nor part of the value before it',
      suggestion: "a ':' is missing, or the line belongs further in",
      shift: 0,
    };
  if (message.startsWith('Implicit keys need to be on a single line'))
    return {
      message: 'this is neither a key nor part of the value before it',
      suggestion: "a ':' is missing, or a quote is not closed",
      shift: 0,
    };
  if (/^Unexpected \S+ at node end|^Not a YAML token|^Unexpected \S+ token/.test(message))
    return {
      message: 'there is more text behind a value that has ended',
      suggestion: 'a text that begins with a quote or a sign goes in quotes as a whole',
      shift: 0,
    };
  return undefined;
}

/** `a: run: x` on one line, or a value that goes on in a line further in. */
function nestedProblem(text: string, start: number): YamlProblem {
  const newline = text.indexOf('\n', start);
  const line = text.slice(start, newline === -1 ? undefined : newline);
  if (/:(\s|$)/.test(line) || line.trim() === '')
    return {
      message: "a key cannot begin behind another key's ':' on the same line",
      suggestion: "begin a new line for it, further in; a text that holds ': ' goes in quotes",
      shift: 0,
    };
  return {
    message: 'the line below is indented as if it belonged to this value',
    suggestion: 'indent it like the key of this line',
    shift: 0,
  };
}
