/** Expressions of GitHub Actions as trees. */

export type Expression =
  | { readonly kind: 'value'; readonly value: string; readonly isText: boolean }
  /** `needs.build.outputs.version`, in lower case but for what people name. */
  | { readonly kind: 'name'; readonly path: readonly string[] }
  | { readonly kind: 'call'; readonly name: string; readonly arguments: readonly Expression[] }
  | { readonly kind: 'not'; readonly of: Expression }
  | { readonly kind: 'binary'; readonly operator: string; readonly left: Expression; readonly right: Expression };

const TOKEN = /\s*(?:('(?:[^']|'')*')|(-?\d+(?:\.\d+)?)|([A-Za-z_][\w-]*)|(&&|\|\||[=!<>]=|[!<>()[\],.*]))/y;
const POWER: Readonly<Record<string, number>> = {
  '||': 1,
  '&&': 2,
  '==': 3,
  '!=': 3,
  '<': 4,
  '>': 4,
  '<=': 4,
  '>=': 4,
};
const LENGTH_MAX = 4_000;
/** Of parentheses, negations and calls within each other. */
const DEPTH_MAX = 100;

/** Undefined where it is no expression. */
export function parseExpression(text: string): Expression | undefined {
  if (text.length > LENGTH_MAX) return undefined;
  const tokens: string[] = [];
  TOKEN.lastIndex = 0;
  let end = 0;
  while (end < text.trimEnd().length) {
    const match = TOKEN.exec(text);
    if (match === null) return undefined;
    tokens.push(match[0].trim());
    end = TOKEN.lastIndex;
  }
  const parser = new ExpressionParser(tokens);
  return parser.whole();
}

class ExpressionParser {
  readonly #tokens: readonly string[];
  #at = 0;
  #depth = 0;

  constructor(tokens: readonly string[]) {
    this.#tokens = tokens;
  }

  whole(): Expression | undefined {
    const expression = this.#binary(0);
    return this.#at === this.#tokens.length ? expression : undefined;
  }

  #binary(above: number): Expression | undefined {
    let left = this.#unary();
    for (;;) {
      const operator = this.#tokens[this.#at] ?? '';
      const power = POWER[operator] ?? 0;
      if (left === undefined || power <= above) return left;
      this.#at += 1;
      const right = this.#binary(power);
      if (right === undefined) return undefined;
      left = { kind: 'binary', operator, left, right };
    }
  }

  #unary(): Expression | undefined {
    if (this.#depth >= DEPTH_MAX) return undefined;
    this.#depth += 1;
    const expression = this.#withinDepth();
    this.#depth -= 1;
    return expression;
  }

  #withinDepth(): Expression | undefined {
    if (this.#taken('!')) {
      const of = this.#unary();
      return of === undefined ? undefined : { kind: 'not', of };
    }
    if (this.#taken('(')) {
      const inner = this.#binary(0);
      return this.#taken(')') ? inner : undefined;
    }
    const token = this.#tokens[this.#at++];
    if (token === undefined) return undefined;
    if (token.startsWith("'")) return { kind: 'value', value: token.slice(1, -1).replaceAll("''", "'"), isText: true };
    if (/^-?\d/.test(token) || ['true', 'false', 'null'].includes(token))
      return { kind: 'value', value: token === 'null' ? '' : token, isText: false };
    if (!/^[A-Za-z_]/.test(token)) return undefined;
    return this.#tokens[this.#at] === '(' ? this.#call(token) : this.#name(token);
  }

  #call(name: string): Expression | undefined {
    this.#at += 1;
    const given: Expression[] = [];
    while (!this.#taken(')')) {
      const argument = this.#binary(0);
      if (argument === undefined) return undefined;
      given.push(argument);
      if (!this.#taken(',') && this.#tokens[this.#at] !== ')') return undefined;
    }
    return { kind: 'call', name: name.toLowerCase(), arguments: given };
  }

  #name(first: string): Expression | undefined {
    const path = [first];
    for (;;) {
      if (this.#taken('.')) {
        path.push(this.#tokens[this.#at++] ?? '');
      } else if (this.#taken('[')) {
        const key = this.#tokens[this.#at++] ?? '';
        if (!this.#taken(']')) return undefined;
        path.push(key.replaceAll(/^'|'$/g, ''));
      } else {
        return { kind: 'name', path };
      }
    }
  }

  #taken(token: string): boolean {
    if (this.#tokens[this.#at] !== token) return false;
    this.#at += 1;
    return true;
  }
}
