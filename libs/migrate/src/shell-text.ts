/** Texts for a shell. */

/** One word, whatever is in it. */
export function quoted(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", String.raw`'\''`)}'`;
}

/** What is not translated must not look as if it had been done: it says so and fails. */
export function missing(what: string): string {
  return `echo ${quoted(`not translated: ${what.replaceAll('${{', '{').replaceAll(/\s+/g, ' ')}`)} >&2; exit 1`;
}

/** A variable's name out of any text: `node-version` becomes `NODE_VERSION`. */
export function variableName(...parts: readonly string[]): string {
  const name = parts
    .join('_')
    .replaceAll(/[^A-Za-z0-9_]/g, '_')
    .toUpperCase();
  return /^\d/.test(name) ? `_${name}` : name;
}

/**
 * The script with each `${{ … }}` replaced by what `reference` makes of it, such as `${NAME}`; where one stands in single quotes,
 * they are closed around it. Undefined from `reference` leaves nothing in its place.
 */
export function substituted(script: string, reference: (expression: string) => string | undefined): string {
  const isInSingleQuotes = singleQuotesIn(script);
  let text = '';
  let from = 0;
  for (const [start, end] of expressionsIn(script)) {
    const value = reference(script.slice(start + 3, end - 2).trim()) ?? '';
    text += script.slice(from, start);
    text += value.includes('$') && isInSingleQuotes(start) ? `'"${value}"'` : value;
    from = end;
  }
  return text + script.slice(from);
}

/** The text with each `${{ … }}` replaced by what `value` makes of what stands in it. */
export function withoutExpressions(text: string, value: (inner: string) => string): string {
  let result = '';
  let from = 0;
  for (const [start, end] of expressionsIn(text)) {
    result += text.slice(from, start) + value(text.slice(start + 3, end - 2));
    from = end;
  }
  return result + text.slice(from);
}

/** Where each `${{ … }}` begins and ends. One that does not end is none, and is looked for once. */
function* expressionsIn(text: string): Generator<readonly [start: number, end: number]> {
  for (let start = text.indexOf('${{'); start !== -1;) {
    const close = text.indexOf('}}', start + 3);
    if (close === -1) return;
    yield [start, close + 2];
    start = text.indexOf('${{', close + 2);
  }
}

/**
 * The text for the inside of double quotes: what it says itself means nothing to the shell, and each `${{ … }}` is what `reference`
 * makes of it.
 */
export function inDoubleQuotes(text: string, reference: (expression: string) => string | undefined): string {
  let result = '';
  let from = 0;
  for (const [start, end] of expressionsIn(text)) {
    result += escaped(text.slice(from, start)) + (reference(text.slice(start + 3, end - 2).trim()) ?? '');
    from = end;
  }
  return result + escaped(text.slice(from));
}

/** Within double quotes; a dollar too, unless variables are to be read. */
export function escaped(text: string, options: { readonly readsVariables?: boolean } = {}): string {
  if (options.readsVariables !== true) return text.replaceAll(/[\\"`$]/g, String.raw`\$&`);
  return text.replaceAll(/[\\"`]|\$(?=\()/g, String.raw`\$&`);
}

/**
 * Commands in a shell of their own that ends at the first that fails, as a step's or an `after_script`'s does there, and fails nobody:
 * behind `|| true` a shell would pass over the failure and go on with the next, in the wrong folder where that was a `cd`.
 * Leaves `set +e` behind.
 */
export function mayFailAlone(commands: string): string {
  return `set +e\n(\nset -e\n${commands}\n)`;
}

/** Names of variables that a script reads, by `$NAME` or `${NAME…}`, as far as they can be seen. */
export function variablesOf(script: string): ReadonlySet<string> {
  return new Set(Array.from(script.matchAll(/\$\{?([A-Za-z_][A-Za-z0-9_]*)/g), ([, name = '']) => name));
}

/** Whether a place of the script stands in single quotes; here-documents are taken to have none. To be asked from the front to the end. */
function singleQuotesIn(script: string): (place: number) => boolean {
  let [at, quote] = [0, ''];
  let [lineFrom, isHereDocument] = [0, false];
  let commentEnd = -1;
  return (place) => {
    for (let end = script.indexOf('\n', lineFrom); end !== -1 && end < place; end = script.indexOf('\n', lineFrom)) {
      const line = script.slice(lineFrom, end);
      if (/<<-?\s*\w/.test(line)) isHereDocument = true;
      else if (/^\w+$/.test(line)) isHereDocument = false;
      lineFrom = end + 1;
    }
    for (; at < place; at++) {
      const char = script[at] ?? '';
      if (quote === '' && char === '#' && (at === 0 || /\s/.test(script[at - 1] ?? ''))) {
        if (commentEnd < at) commentEnd = script.indexOf('\n', at);
        if (commentEnd === -1) commentEnd = script.length;
        if (commentEnd >= place) return false;
        at = commentEnd;
      } else if (char === '\\' && quote !== "'") at += 1;
      else if (quote === '' && (char === "'" || char === '"')) quote = char;
      else if (char === quote) quote = '';
    }
    return !isHereDocument && quote === "'";
  };
}
