/**
 * YAML text to a plain tree of maps, lists and scalars, each with its place in the text.
 *
 * YAMLTREE-1. Nothing is given to the parser that `yaml-screen.ts` has not measured.
 * YAMLTREE-2. Scalars stay text as it was written (`1.10` is not the number 1.1); what a value means is decided where it is used.
 * YAMLTREE-3. An alias is the very node that its anchor stands before, so the tree is in fact a graph without cycles. Its weight
 *    as a tree is bounded here, and whoever walks it may treat it as a tree.
 * YAMLTREE-4. Keys are unique. The package's own check compares each key with each other one, so it is off and a set does it.
 */
import { Composer, isAlias, isMap, isScalar, isSeq, Parser } from 'yaml';
import type { CST, Document, Node, YAMLParseError } from 'yaml';
import { PIPELINE_LIMITS } from '../model/limits.ts';
import { yamlProblem } from './yaml-messages.ts';
import { printable, quoted } from '../text/printable.ts';
import type { Problems } from '../text/problems.ts';
import { didYouMean } from '../text/suggest.ts';
import type { Span } from '../text/text-position.ts';
import { MORE_DOCUMENTS, scanTokens } from './yaml-screen.ts';

export interface ScalarNode extends Span {
  readonly kind: 'scalar';
  readonly text: string;
  /** Neither quoted nor a block: only such a scalar can be null, a number or a boolean. */
  readonly plain: boolean;
}

interface ListNode extends Span {
  readonly kind: 'list';
  readonly items: readonly YamlNode[];
}

export interface MapEntry {
  readonly key: string;
  readonly keySpan: Span;
  readonly value: YamlNode;
}

export interface MapNode extends Span {
  readonly kind: 'map';
  readonly entries: readonly MapEntry[];
}

export type YamlNode = ScalarNode | ListNode | MapNode;

/** The levels allowed, the document below them, and the scalar above them. */
const STACK_MAX = PIPELINE_LIMITS.depthMax + 2;

/** What a remedy is known for, by the parser's error code. */
const REMEDIES: Readonly<Record<string, string>> = {
  BLOCK_AS_IMPLICIT_KEY: "put a value that holds ': ' in quotes",
  TAB_AS_INDENT: 'indent with spaces',
  BAD_INDENT: 'check the indentation',
  MISSING_CHAR: "check for a missing ':', quote or bracket",
  MULTILINE_IMPLICIT_KEY: "check for a missing ':' or a wrong indentation",
};

/** Reads a screened text. Undefined where it cannot be read; the problems then say why. */
export function readYaml(text: string, problems: Problems): YamlNode | undefined {
  const tokens = scanTokens(text, problems);
  if (tokens === undefined) return undefined;
  const parsed = parseTokens(tokens, problems);
  if (parsed === undefined) return undefined;
  const composer = new Composer({
    schema: 'failsafe',
    version: '1.2',
    merge: false,
    strict: true,
    uniqueKeys: false,
    keepSourceTokens: false,
  });
  const documents: Document.Parsed[] = [];
  for (const document of composer.compose(parsed, true, text.length)) {
    documents.push(document as Document.Parsed);
    if (documents.length > 1) break;
  }
  const [first, second] = documents;
  if (first === undefined || (first.contents === null && first.errors.length === 0)) {
    problems.add({ start: 0, end: 0 }, '', 'the file is empty');
    return undefined;
  }
  if (second !== undefined) {
    const start = second.range[0];
    problems.add({ start, end: start + 3 }, '', ...MORE_DOCUMENTS);
  }
  noteErrors(first.errors, text, problems);
  if (first.errors.length > 0 || second !== undefined) return undefined;
  return new TreeReader(problems).read(first.contents);
}

/**
 * Feeds the parser, and stops where its stack shows more levels than are allowed. That is exact where the gauge of the
 * tokens is a bound: in broken text the parser opens maps where no indentation and no bracket does.
 */
function parseTokens(tokens: readonly string[], problems: Problems): CST.Token[] | undefined {
  const parser = new Parser();
  const parsed: CST.Token[] = [];
  let offset = 0;
  for (const token of tokens) {
    for (const part of parser.next(token)) parsed.push(part);
    if (parser.stack.length > STACK_MAX) {
      problems.add(
        { start: offset, end: offset + token.length },
        '',
        `nested more than ${PIPELINE_LIMITS.depthMax} levels deep`,
      );
      return undefined;
    }
    if (token.length > 1 || token > '\u001f' || token === '\n' || token === '\t') offset += token.length;
  }
  for (const part of parser.end()) parsed.push(part);
  return parsed;
}

/** The parser's errors, one a line: the others of a line mostly follow from its first, as do those of all lines that it can no longer place. */
function noteErrors(errors: readonly YAMLParseError[], text: string, problems: Problems): void {
  let lineEnd = -1;
  for (const error of errors) {
    const [start, end] = error.pos;
    if (start < lineEnd || (lineEnd !== -1 && error.message.includes('in YAML stream'))) continue;
    const next = text.indexOf('\n', start);
    lineEnd = next === -1 ? text.length : next;
    const message = printable(error.message);
    const remedy = text.startsWith('${{', start - 1)
      ? "inside { } and [ ] a value with '${{ }}' goes in quotes"
      : REMEDIES[error.code];
    const ours = yamlProblem(error.message, text, start);
    if (ours === undefined)
      problems.add({ start, end }, '', `YAML: ${message.slice(0, 1).toLowerCase()}${message.slice(1)}`, remedy);
    else
      problems.add(
        { start: start + ours.shift, end: Math.max(end, start + ours.shift) },
        '',
        `YAML: ${ours.message}`,
        text.startsWith('${{', start - 1) ? remedy : ours.suggestion,
      );
  }
}

interface Anchored {
  readonly node: YamlNode;
  readonly weight: Weight;
}

/** What a node counts for once its aliases are written out. */
interface Weight {
  readonly nodes: number;
  readonly text: number;
}

class TreeReader {
  readonly #anchors = new Map<string, Anchored>();
  readonly #open = new Set<string>();
  readonly #faulty = new Set<YamlNode>();
  readonly #problems: Problems;
  #nodes = 0;
  #text = 0;
  #tooLarge = false;
  #depth = 0;

  constructor(problems: Problems) {
    this.#problems = problems;
  }

  read(root: Node | null): YamlNode | undefined {
    const node = this.#convert(root);
    return this.#tooLarge ? undefined : node;
  }

  #convert(node: Node | null | undefined): YamlNode {
    if (node === null || node === undefined) return { kind: 'scalar', text: '', plain: true, start: 0, end: 0 };
    const start = node.range?.[0] ?? 0;
    const span = { start, end: Math.max(start, node.range?.[1] ?? start) };
    if (isAlias(node)) return this.#follow(node.source, span);
    const anchor = isScalar(node) || isMap(node) || isSeq(node) ? node.anchor : undefined;
    if (anchor === undefined) return this.#convertPlain(node, span);
    this.#open.add(anchor);
    const before: Weight = { nodes: this.#nodes, text: this.#text };
    const converted = this.#convertPlain(node, span);
    this.#open.delete(anchor);
    const weight = { nodes: this.#nodes - before.nodes, text: this.#text - before.text };
    this.#anchors.set(anchor, { node: converted, weight });
    return converted;
  }

  #convertPlain(node: Node, span: Span): YamlNode {
    this.#depth += 1;
    if (this.#depth === PIPELINE_LIMITS.depthMax + 1)
      this.#problems.add(span, '', `nested more than ${PIPELINE_LIMITS.depthMax} levels deep`);
    const converted = this.#convertKind(node, span);
    this.#depth -= 1;
    return converted;
  }

  #convertKind(node: Node, span: Span): YamlNode {
    if (isMap(node)) {
      this.#weigh(1, 0, span);
      const seen = new Map<string, Span>();
      const entries: MapEntry[] = [];
      for (const pair of node.items) {
        const key = this.#key(pair.key as Node | null, span);
        const value = this.#convert(pair.value as Node | null);
        if (key === undefined) continue;
        if (seen.has(key.text)) {
          this.#problems.add(
            key,
            '',
            `the key ${quoted(key.text)} stands twice in the same map`,
            'remove or rename one of the two',
          );
          continue;
        }
        seen.set(key.text, key);
        // An absent value has no place of its own; its key's end is where it would stand.
        const absent =
          value.kind === 'scalar' &&
          value.text === '' &&
          value.plain &&
          value.start >= key.end &&
          !this.#faulty.has(value);
        const placed = absent ? { ...value, start: key.start, end: key.end } : value;
        entries.push({ key: key.text, keySpan: { start: key.start, end: key.end }, value: placed });
      }
      return { kind: 'map', entries, start: span.start, end: span.end };
    }
    if (isSeq(node)) {
      this.#weigh(1, 0, span);
      const items = node.items.map((item) => this.#convert(item as Node | null));
      return { kind: 'list', items, start: span.start, end: span.end };
    }
    const text = isScalar(node) && typeof node.value === 'string' ? node.value : '';
    // The tag itself has been noted where it stands.
    if (isScalar(node) && node.tag !== undefined) return this.#fault(span);
    const plain = isScalar(node) && (node.type === 'PLAIN' || node.type === undefined);
    this.#weigh(1, text.length, span);
    if (!plain && (text.includes('\0') || !text.isWellFormed())) {
      this.#problems.add(
        span,
        '',
        'the text holds a NUL character or half of a surrogate pair, which no program can be given',
      );
    }
    return { kind: 'scalar', text, plain, start: span.start, end: span.end };
  }

  #key(node: Node | null, mapSpan: Span): ScalarNode | undefined {
    const key = this.#convert(node);
    if (key.kind === 'scalar') return key;
    this.#problems.add(
      node?.range == null ? mapSpan : key,
      '',
      'a key must be a plain text, not a list or a map',
      "a text that begins with '[' or '{' goes in quotes",
    );
    this.#problems.cover(mapSpan);
    return undefined;
  }

  #follow(name: string, span: Span): YamlNode {
    const target = this.#anchors.get(name);
    if (target !== undefined && !this.#open.has(name)) {
      this.#weigh(target.weight.nodes, target.weight.text, span);
      return target.node;
    }
    if (this.#open.has(name))
      this.#problems.add(span, '', `the alias ${quoted(`*${name}`)} stands inside what it refers to`);
    else
      this.#problems.add(span, '', `there is no anchor ${quoted(`&${name}`)} before this alias`, () =>
        didYouMean(name, this.#anchors.keys()),
      );
    return this.#fault(span);
  }

  /** Stands for a value that is wrong in itself and has been noted, so that no further problem is made of it. */
  #fault(span: Span): ScalarNode {
    this.#problems.cover(span);
    const node: ScalarNode = { kind: 'scalar', text: '', plain: true, start: span.start, end: span.end };
    this.#faulty.add(node);
    return node;
  }

  #weigh(nodes: number, text: number, span: Span): void {
    this.#nodes += nodes;
    this.#text += text;
    if (this.#tooLarge) return;
    if (this.#nodes > PIPELINE_LIMITS.expandedNodesMax || this.#text > PIPELINE_LIMITS.expandedTextMax) {
      this.#tooLarge = true;
      this.#problems.add(
        span,
        '',
        `with its aliases written out the file is larger than ${PIPELINE_LIMITS.expandedNodesMax.toLocaleString('en')} values or ${PIPELINE_LIMITS.expandedTextMax / 1024} KiB`,
      );
    }
  }
}
