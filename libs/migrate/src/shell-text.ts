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
  const pattern = /\$\{\{([\s\S]*?)\}\}/g;
  let text = '';
  let from = 0;
  for (const match of script.matchAll(pattern)) {
    const before = script.slice(from, match.index);
    text += before;
    const value = reference((match[1] ?? '').trim()) ?? '';
    text += value.includes('$') && isInSingleQuotes(script.slice(0, match.index)) ? `'"${value}"'` : value;
    from = match.index + match[0].length;
  }
  return text + script.slice(from);
}

/**
 * The text for the inside of double quotes: what it says itself means nothing to the shell, and each `${{ … }}` is what `reference`
 * makes of it.
 */
export function inDoubleQuotes(text: string, reference: (expression: string) => string | undefined): string {
  return text
    .split(/(\$\{\{[\s\S]*?\}\})/)
    .map((part, index) => (index % 2 === 0 ? escaped(part) : (reference(part.slice(3, -2).trim()) ?? '')))
    .join('');
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

/** Whether what comes behind this beginning of a script stands in single quotes; here-documents are taken to have none. */
function isInSingleQuotes(before: string): boolean {
  if (/<<-?\s*\w+[^\n]*\n(?:(?!\n\w+\n)[\s\S])*$/.test(before)) return false;
  let quote = '';
  for (let at = 0; at < before.length; at++) {
    const char = before[at] ?? '';
    if (quote === '' && char === '#' && /(^|\s)$/.test(before.slice(Math.max(0, at - 1), at))) {
      const end = before.indexOf('\n', at);
      if (end === -1) return false;
      at = end;
    } else if (char === '\\' && quote !== "'") at += 1;
    else if (quote === '' && (char === "'" || char === '"')) quote = char;
    else if (char === quote) quote = '';
  }
  return quote === "'";
}
