/**
 * The language between `${{` and `}}`: text to a syntax tree, with every name and call that it uses and where it stands.
 * Which names exist is not known here; `references.ts` checks them once the whole file has been read.
 */
import type { Expression, ExpressionFunction } from '../model/definition.ts';
import { PIPELINE_LIMITS } from '../model/limits.ts';
import { quoted } from '../text/printable.ts';
import { didYouMean } from '../text/suggest.ts';

/** A part of an expression's text; offsets count from the beginning of that text. */
export interface Part {
  readonly from: number;
  readonly to: number;
}

export interface PathUse extends Part {
  readonly path: readonly string[];
}

interface CallUse extends Part {
  readonly name: ExpressionFunction;
}

export interface ParsedExpression {
  readonly expression: Expression;
  readonly paths: readonly PathUse[];
  readonly calls: readonly CallUse[];
}

export interface ExpressionFault extends Part {
  readonly message: string;
  readonly suggestion?: string | undefined;
}

const FUNCTIONS: readonly ExpressionFunction[] = ['success', 'failure', 'always'];

interface Token extends Part {
  readonly kind: 'name' | 'string' | 'number' | 'symbol' | 'end';
  readonly text: string;
  readonly value?: string | number;
}

/** Parses the text of one expression; the fault says where it goes wrong. */
export function parseExpression(text: string): ParsedExpression | { readonly fault: ExpressionFault } {
  if (text.length > PIPELINE_LIMITS.expressionLengthMax) {
    return {
      fault: {
        from: 0,
        to: text.length,
        message: `the expression is longer than ${PIPELINE_LIMITS.expressionLengthMax} characters`,
      },
    };
  }
  try {
    return new ExpressionParser(tokenize(text)).parse();
  } catch (error) {
    if (error instanceof Fault) return { fault: error.fault };
    throw error;
  }
}

/** Carries a fault out of the descent; never leaves this module. */
class Fault extends Error {
  readonly fault: ExpressionFault;

  constructor(part: Part, message: string, suggestion?: string) {
    super(message);
    this.fault = { from: part.from, to: part.to, message, suggestion };
  }
}

const SYMBOLS = ['==', '!=', '&&', '||', '!', '(', ')', '.', '[', ']', ','];
const NAME = /[A-Za-z_][A-Za-z0-9_-]*/y;
const NUMBER = /-?[0-9]+(\.[0-9]+)?/y;

function tokenize(text: string): Token[] {
  const tokens: Token[] = [];
  let at = 0;
  while (at < text.length) {
    const character = text[at] ?? '';
    if (/\s/.test(character)) {
      at += 1;
      continue;
    }
    const token =
      stringAt(text, at) ??
      matchAt(text, at, NUMBER, 'number') ??
      matchAt(text, at, NAME, 'name') ??
      symbolAt(text, at);
    if (token === undefined) throw unexpectedCharacter(text, at);
    tokens.push(token);
    at = token.to;
  }
  tokens.push({ kind: 'end', text: '', from: text.trimEnd().length, to: text.trimEnd().length + 1 });
  return tokens;
}

function matchAt(text: string, at: number, pattern: RegExp, kind: 'name' | 'number'): Token | undefined {
  pattern.lastIndex = at;
  const found = pattern.exec(text)?.[0];
  if (found === undefined) return undefined;
  const part = { from: at, to: at + found.length };
  if (kind === 'name') return { kind, text: found, ...part };
  const value = Number(found);
  // No JSON has it.
  if (!Number.isFinite(value)) throw new Fault(part, 'the number is too large', 'write it as a text, in quotes');
  return { kind, text: found, ...part, value };
}

function symbolAt(text: string, at: number): Token | undefined {
  const found = SYMBOLS.find((symbol) => text.startsWith(symbol, at));
  return found === undefined ? undefined : { kind: 'symbol', text: found, from: at, to: at + found.length };
}

/** In single quotes `''` is one quote; in double quotes a backslash takes the next character as it is. */
function stringAt(text: string, at: number): Token | undefined {
  const quote = text[at];
  if (quote !== "'" && quote !== '"') return undefined;
  let value = '';
  for (let index = at + 1; index < text.length; index++) {
    const character = text[index] ?? '';
    if (character === quote) {
      if (quote === "'" && text[index + 1] === "'") index += 1;
      else return { kind: 'string', text: text.slice(at, index + 1), value, from: at, to: index + 1 };
    } else if (character === '\\' && quote === '"' && index + 1 < text.length) {
      index += 1;
    }
    value += text[index] ?? '';
  }
  throw new Fault({ from: at, to: text.length }, `the text is not closed by ${quote}`);
}

function unexpectedCharacter(text: string, at: number): Fault {
  const part = { from: at, to: at + 1 };
  const character = text[at] ?? '';
  if (character === '=') return new Fault(part, "'=' compares nothing", "did you mean '=='?");
  if (character === '&' || character === '|')
    return new Fault(part, `'${character}' is not an operator`, `did you mean '${character}${character}'?`);
  if ('<>'.includes(character))
    return new Fault(part, `'${character}' is not supported`, 'the comparisons are == and !=');
  if ('+-*/%'.includes(character))
    return new Fault(part, `'${character}' is not supported: expressions do not calculate`);
  if (character === '$') return new Fault(part, "'$' is not a name", 'a name stands without $ inside ${{ }}');
  return new Fault(part, `${quoted(character)} means nothing in an expression`);
}

class ExpressionParser {
  readonly #tokens: readonly Token[];
  readonly #paths: PathUse[] = [];
  readonly #calls: CallUse[] = [];
  #at = 0;
  #depth = 0;

  constructor(tokens: readonly Token[]) {
    this.#tokens = tokens;
  }

  parse(): ParsedExpression {
    if (this.#peek().kind === 'end') throw new Fault({ from: 0, to: 1 }, 'the expression is empty');
    const expression = this.#or();
    const rest = this.#peek();
    if (rest.kind !== 'end') throw new Fault(rest, `unexpected ${quoted(rest.text)} after the end of the expression`);
    return { expression, paths: this.#paths, calls: this.#calls };
  }

  #or(): Expression {
    let left = this.#and();
    while (this.#take('||')) left = { kind: 'binary', operator: '||', left, right: this.#and() };
    return left;
  }

  #and(): Expression {
    let left = this.#equality();
    while (this.#take('&&')) left = { kind: 'binary', operator: '&&', left, right: this.#equality() };
    return left;
  }

  #equality(): Expression {
    let left = this.#unary();
    for (;;) {
      if (this.#take('==')) left = { kind: 'binary', operator: '==', left, right: this.#unary() };
      else if (this.#take('!=')) left = { kind: 'binary', operator: '!=', left, right: this.#unary() };
      else return left;
    }
  }

  #unary(): Expression {
    const token = this.#peek();
    this.#depth += 1;
    if (this.#depth > PIPELINE_LIMITS.expressionDepthMax)
      throw new Fault(token, `nested more than ${PIPELINE_LIMITS.expressionDepthMax} levels deep`);
    const expression: Expression = this.#take('!') ? { kind: 'not', operand: this.#unary() } : this.#primary();
    this.#depth -= 1;
    return expression;
  }

  #primary(): Expression {
    const token = this.#next();
    if (token.kind === 'string' || token.kind === 'number') return { kind: 'literal', value: token.value ?? '' };
    if (token.kind === 'symbol' && token.text === '(') {
      const inner = this.#or();
      this.#expect(')');
      return inner;
    }
    if (token.kind === 'name') return this.#named(token);
    throw new Fault(
      token,
      token.kind === 'end' ? 'the expression ends too early' : `a value is expected here, not ${quoted(token.text)}`,
    );
  }

  #named(token: Token): Expression {
    if (token.text === 'true' || token.text === 'false') return { kind: 'literal', value: token.text === 'true' };
    if (token.text === 'null') return { kind: 'literal', value: null };
    if (this.#take('(')) return this.#call(token);
    const path = [token.text];
    let to = token.to;
    for (;;) {
      if (this.#take('.')) {
        const key = this.#next();
        if (key.kind !== 'name')
          throw new Fault(key, "a name must follow '.'", "other names go in brackets: ['my name']");
        path.push(key.text);
        to = key.to;
      } else if (this.#take('[')) {
        const key = this.#next();
        if (key.kind !== 'string') throw new Fault(key, "a text in quotes must follow '['", "['name']");
        path.push(String(key.value));
        to = this.#expect(']').to;
      } else {
        break;
      }
    }
    const [only] = path;
    if (path.length === 1 && FUNCTIONS.some((name) => name === only))
      throw new Fault(token, `${quoted(token.text)} is a function`, `did you mean '${token.text}()'?`);
    this.#paths.push({ path, from: token.from, to });
    return { kind: 'path', path };
  }

  #call(token: Token): Expression {
    if (token.text === 'hash') return this.#hash(token);
    const name = FUNCTIONS.find((candidate) => candidate === token.text);
    if (name === undefined)
      throw new Fault(
        token,
        `there is no function ${quoted(token.text)}`,
        token.text === 'hashFiles' ? "did you mean 'hash'?" : didYouMean(token.text, [...FUNCTIONS, 'hash']),
      );
    const close = this.#peek();
    if (!this.#take(')')) throw new Fault(close, `'${name}()' takes no arguments`);
    this.#calls.push({ name, from: token.from, to: close.to });
    return { kind: 'call', name, arguments: [] };
  }

  /** Its arguments are patterns, written out: which files count must not depend on anything. */
  #hash(token: Token): Expression {
    const patterns: Expression[] = [];
    do {
      const pattern = this.#next();
      if (pattern.kind !== 'string')
        throw new Fault(pattern, "'hash()' takes patterns in quotes", "such as hash('package-lock.json')");
      patterns.push({ kind: 'literal', value: String(pattern.value) });
    } while (this.#take(','));
    const close = this.#expect(')');
    this.#calls.push({ name: 'hash', from: token.from, to: close.to });
    return { kind: 'call', name: 'hash', arguments: patterns };
  }

  #peek(): Token {
    return this.#tokens[this.#at] ?? { kind: 'end', text: '', from: 0, to: 1 };
  }

  #next(): Token {
    const token = this.#peek();
    if (token.kind !== 'end') this.#at += 1;
    return token;
  }

  #take(symbol: string): boolean {
    const token = this.#peek();
    if (token.kind !== 'symbol' || token.text !== symbol) return false;
    this.#at += 1;
    return true;
  }

  #expect(symbol: string): Token {
    const token = this.#peek();
    if (!this.#take(symbol))
      throw new Fault(
        token,
        `'${symbol}' is expected here${token.kind === 'end' ? '' : `, not ${quoted(token.text)}`}`,
      );
    return token;
  }
}
