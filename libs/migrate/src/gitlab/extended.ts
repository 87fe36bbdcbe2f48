/** `extends` and `!reference`: what a job has from others. */
import type { Ledger } from '../ledger.ts';
import { textsOf, UnreadableSource, type SourceEntry, type SourceMap, type SourceNode } from '../source.ts';

const DEPTH_MAX = 11;
/** Of all lists together, once references are written out. */
const ITEMS_MAX = 50_000;
/** Entries of all jobs together, with what they extend. */
const ENTRIES_MAX = 500_000;

export class Extended {
  readonly #root: SourceMap;
  readonly #ledger: Ledger;
  readonly #bases = new Map<string, readonly SourceEntry[]>();
  #items = 0;
  #entries = 0;

  constructor(root: SourceMap, ledger: Ledger) {
    this.#root = root;
    this.#ledger = ledger;
  }

  /** The job with all that it extends; its entries are its own, so that each job says what it has asked for. */
  whole(job: SourceMap, level = 0): SourceMap {
    const named = job.entries.find(({ key }) => key === 'extends');
    const own = this.#unseen(job.entries);
    if (named === undefined || level >= DEPTH_MAX) return { ...job, entries: own };
    named.seen = true;
    let entries: SourceEntry[] = [];
    for (const name of textsOf(named.value)) {
      const base = this.#baseOf(name, level);
      if (base !== undefined) entries = merged(entries, this.#unseen(base));
      else
        this.#ledger.tell(
          named.line,
          `'${name}', which is extended and not in this file`,
          'translate the file that has it too',
        );
    }
    return { ...job, entries: merged(entries, own) };
  }

  /** A copy, of which nobody has asked for anything. */
  #unseen(entries: readonly SourceEntry[]): SourceEntry[] {
    this.#entries += entries.length;
    if (this.#entries > ENTRIES_MAX) throw new UnreadableSource('what its jobs extend makes too much of it');
    return entries.map((entry) => ({ ...entry, seen: false, value: this.#unseenNode(entry.value) }));
  }

  #unseenNode(node: SourceNode): SourceNode {
    if (node.kind === 'map') return { ...node, entries: this.#unseen(node.entries) };
    if (node.kind === 'list') {
      this.#entries += node.items.length;
      return { ...node, items: node.items.map((item) => this.#unseenNode(item)) };
    }
    return node;
  }

  /** Each is put together once, however many extend it. */
  #baseOf(name: string, level: number): readonly SourceEntry[] | undefined {
    const known = this.#bases.get(name);
    if (known !== undefined) return known;
    const base = this.#root.entries.find(({ key }) => key === name);
    if (base?.value.kind !== 'map') return undefined;
    const { entries } = this.whole(base.value, level + 1);
    this.#bases.set(name, entries);
    return entries;
  }

  /** A list, with what it refers to in place of references. */
  items(node: SourceNode, level = 0): readonly SourceNode[] {
    this.#items += node.kind === 'list' ? node.items.length : 1;
    if (this.#items > ITEMS_MAX) throw new UnreadableSource('the references of the file make too much of it');
    if (node.kind !== 'list') return [node];
    if (!node.isReference)
      return node.items.flatMap((item) => (item.kind === 'list' ? this.items(item, level) : [item]));
    const target = this.#referred(node);
    if (target === undefined || level >= DEPTH_MAX) {
      this.#ledger.tell(node.line, `the reference ${textsOf(node).join('.')}, which leads nowhere in this file`);
      return [];
    }
    return this.items(target, level + 1);
  }

  texts(node: SourceNode): readonly string[] {
    return this.items(node).flatMap(textsOf);
  }

  #referred(node: SourceNode & { readonly kind: 'list' }): SourceNode | undefined {
    return textsOf({ ...node, isReference: false }).reduce<SourceNode | undefined>(
      (at, name) => (at?.kind === 'map' ? at.entries.find(({ key }) => key === name)?.value : undefined),
      this.#root,
    );
  }
}

/** Maps are merged key by key; anything else of the later one stands. */
function merged(earlier: readonly SourceEntry[], later: readonly SourceEntry[]): SourceEntry[] {
  const result = new Map(earlier.map((entry) => [entry.key, entry]));
  for (const entry of later) {
    const before = result.get(entry.key);
    const value: SourceNode =
      before?.value.kind === 'map' && entry.value.kind === 'map'
        ? { ...entry.value, entries: merged(before.value.entries, entry.value.entries) }
        : entry.value;
    result.set(entry.key, { ...entry, value });
  }
  return [...result.values()];
}
