/**
 * The file that is to be translated, as maps, lists and texts with the lines at which they stand.
 *
 * SOURCE-1. Every entry of a map is either asked for or not; what nobody has asked for is told at the end, so that nothing of a
 *    file is dropped in silence (`Ledger.tellRest`).
 * SOURCE-2. Merge keys and aliases are written out here, within a bound of their own.
 */
import {
  isAlias,
  isMap,
  isScalar,
  isSeq,
  LineCounter,
  parseDocument,
  visit,
  type Alias,
  type Document,
  type Node,
} from 'yaml';

export interface SourceText {
  readonly kind: 'text';
  readonly line: number;
  readonly text: string;
  /** Neither quoted nor a block: it can be a number, a boolean or nothing. */
  readonly plain: boolean;
}

interface SourceList {
  readonly kind: 'list';
  readonly line: number;
  readonly items: readonly SourceNode[];
  /** `!reference` of GitLab: names of what stands elsewhere. */
  readonly isReference: boolean;
}

export interface SourceEntry {
  readonly key: string;
  readonly line: number;
  readonly value: SourceNode;
  seen: boolean;
}

export interface SourceMap {
  readonly kind: 'map';
  readonly line: number;
  readonly entries: readonly SourceEntry[];
}

export type SourceNode = SourceText | SourceList | SourceMap;

/** The file cannot be translated at all; the message names the place and the remedy. */
export class UnreadableSource extends Error {}

const LENGTH_MAX = 1024 * 1024;
const NODES_MAX = 60_000;
const DEPTH_MAX = 64;

/** @throws UnreadableSource */
export function readSource(text: string): SourceMap {
  if (text.length > LENGTH_MAX) throw new UnreadableSource('the file has more than 1 MiB');
  const lines = new LineCounter();
  const { document, targets } = parsed(text, lines);
  const [error] = document.errors;
  if (error !== undefined) {
    const { line } = lines.linePos(error.pos[0]);
    throw new UnreadableSource(`line ${line}: ${error.message.split('\n')[0] ?? 'it is no YAML'}`);
  }
  const root = new Reader(targets, lines).read(document.contents, 0);
  if (root.kind !== 'map') throw new UnreadableSource('the file is no map of keys');
  return root;
}

/** What each alias stands for: to look for one goes through the document, and there may be ten thousands of them. */
type Targets = ReadonlyMap<Alias, Node>;

function parsed(text: string, lineCounter: LineCounter): { document: Document.Parsed; targets: Targets } {
  try {
    const document = parseDocument(text, { schema: 'failsafe', lineCounter, uniqueKeys: false, logLevel: 'error' });
    return { document, targets: targetsIn(document) };
  } catch (cause) {
    // Brackets a hundred thousand deep end the stack of the parser.
    throw new UnreadableSource('the file is nested too deeply', { cause });
  }
}

/** An alias stands for the last node before it that has its name. */
function targetsIn(document: Document): Targets {
  const anchors = new Map<string, Node>();
  const targets = new Map<Alias, Node>();
  visit(document, {
    Alias: (_, alias) => {
      const target = anchors.get(alias.source);
      if (target !== undefined) targets.set(alias, target);
    },
    Value: (_, node) => {
      if (node.anchor !== undefined) anchors.set(node.anchor, node);
    },
  });
  return targets;
}

class Reader {
  readonly #targets: Targets;
  readonly #lines: LineCounter;
  #nodes = 0;

  constructor(targets: Targets, lines: LineCounter) {
    this.#targets = targets;
    this.#lines = lines;
  }

  read(node: Node | null, depth: number): SourceNode {
    this.#nodes += 1;
    if (this.#nodes > NODES_MAX)
      throw new UnreadableSource(`the file has more than ${NODES_MAX} values with all aliases`);
    if (depth > DEPTH_MAX) throw new UnreadableSource(`the file is nested more than ${DEPTH_MAX} levels deep`);
    const line = this.#lineOf(node);
    if (isAlias(node)) return this.read(this.#targets.get(node) ?? null, depth + 1);
    if (isMap(node)) return { kind: 'map', line, entries: this.#entriesOf(node, depth) };
    if (isSeq(node))
      return {
        kind: 'list',
        line,
        items: node.items.map((item) => this.read(item as Node, depth + 1)),
        isReference: node.tag === '!reference',
      };
    if (isScalar(node))
      return {
        kind: 'text',
        line,
        text: String(node.value ?? ''),
        plain: node.type === undefined || node.type === 'PLAIN',
      };
    return { kind: 'text', line, text: '', plain: true };
  }

  /** Later keys win over earlier ones, and own ones over merged ones. */
  #entriesOf(map: { readonly items: readonly { key: unknown; value: unknown }[] }, depth: number): SourceEntry[] {
    const entries = new Map<string, SourceEntry>();
    const merged = new Map<string, SourceEntry>();
    for (const { key, value } of map.items) {
      const name = isScalar(key) ? String(key.value ?? '') : undefined;
      if (name === undefined)
        throw new UnreadableSource(`line ${this.#lineOf(key as Node)}: a key that is a list or a map`);
      if (name === '__proto__') throw new UnreadableSource(`line ${this.#lineOf(key as Node)}: a key called __proto__`);
      const node = this.read(value as Node | null, depth + 1);
      if (name === '<<') {
        for (const from of node.kind === 'list' ? node.items : [node])
          for (const entry of from.kind === 'map' ? from.entries : [])
            if (!merged.has(entry.key)) merged.set(entry.key, entry);
      } else {
        entries.set(name, { key: name, line: this.#lineOf(key as Node), value: node, seen: false });
      }
    }
    return [...[...merged.values()].filter(({ key }) => !entries.has(key)), ...entries.values()];
  }

  #lineOf(node: Node | null): number {
    const start = node?.range?.[0];
    return start === undefined ? 1 : this.#lines.linePos(start).line;
  }
}

/** The value of a key, which counts as asked for from here on. */
export function take(map: SourceMap, key: string): SourceNode | undefined {
  const entry = map.entries.find((one) => one.key === key);
  if (entry === undefined) return undefined;
  entry.seen = true;
  return isNothing(entry.value) ? undefined : entry.value;
}

export function takeText(map: SourceMap, key: string): string | undefined {
  const value = take(map, key);
  return value?.kind === 'text' ? value.text : undefined;
}

export function takeMap(map: SourceMap, key: string): SourceMap | undefined {
  const value = take(map, key);
  return value?.kind === 'map' ? value : undefined;
}

/** A list of texts, or one. */
export function takeTexts(map: SourceMap, key: string): readonly string[] {
  const value = take(map, key);
  return value === undefined ? [] : textsOf(value);
}

/** Every entry, all of them asked for. */
export function takeAll(map: SourceMap | undefined): readonly SourceEntry[] {
  for (const entry of map?.entries ?? []) entry.seen = true;
  return map?.entries ?? [];
}

/** A map of names to texts, such as variables. */
export function textEntries(map: SourceMap | undefined): readonly (readonly [string, SourceText])[] {
  return (map?.entries ?? []).flatMap((entry) => {
    if (entry.value.kind !== 'text') return [];
    entry.seen = true;
    return [[entry.key, entry.value] as const];
  });
}

export function textsOf(node: SourceNode): readonly string[] {
  if (node.kind === 'text') return [node.text];
  return node.kind === 'list' ? node.items.flatMap(textsOf) : [];
}

/** The node and all below it count as asked for: what becomes of it is decided, or told, as a whole. */
export function markSeen(node: SourceNode | undefined): void {
  if (node?.kind === 'list') node.items.forEach(markSeen);
  if (node?.kind === 'map')
    for (const entry of node.entries) {
      entry.seen = true;
      markSeen(entry.value);
    }
}

function isNothing(node: SourceNode): boolean {
  return node.kind === 'text' && node.plain && (node.text === '' || node.text === '~' || node.text === 'null');
}
