/**
 * The index in memory that searches are answered from, rebuilt from the store at the start and kept up by messages between
 * registries. It owns copies only: what is in it may lag behind the store by moments, and nothing but searching reads it.
 *
 * SEARCH-1 An entry is replaced only by one of a higher generation, or of a later life, so that news in the wrong order do no harm.
 * SEARCH-2 An entry of another tenant's scope is in no answer: not as a result, not as a candidate, not in an order.
 * SEARCH-3 The order is total: relevance, then downloads, then the id. The same index answers the same question alike.
 */
import type { ExtensionView } from '@penstock/extension';
import { nearest } from '@penstock/pipeline';
import { extensionView, isNewer, type ExtensionRecord } from '../catalogue/records.ts';
import { WordIndex, type IndexedWords } from './word-index.ts';

export interface SearchQuestion {
  readonly tenant: string | null;
  /** Blank: all. */
  readonly query: string;
  readonly category?: string | undefined;
  readonly limit: number;
}

interface Entry {
  readonly record: ExtensionRecord;
  readonly category: string;
  readonly name: string;
  readonly number: number;
}

/** A longer question has words that no extension has. */
export const QUERY_LENGTH_MAX = 200;
const WORDS_MAX = 12;
const CANDIDATES_MAX = 3;
/** Shorter names are part of too many others. */
const PART_LENGTH_MIN = 3;
/** A hit in the name says far more than one in the description. */
const BOOST = { name: 4, category: 1.5, description: 1 } as const;

export class SearchIndex {
  readonly #byKey = new Map<string, Entry>();
  /** By number; undefined: it was removed. */
  readonly #entries: (Entry | undefined)[] = [];
  readonly #words = new WordIndex();
  readonly #downloads: (key: string) => number;
  /** All entries in the order of a blank question; null: to be made anew. */
  #ordered: readonly Entry[] | null = null;

  /** `downloads`: how often an extension was downloaded, by its key. */
  constructor(downloads: (key: string) => number) {
    this.#downloads = downloads;
  }

  get size(): number {
    return this.#byKey.size;
  }

  keys(): string[] {
    return [...this.#byKey.keys()];
  }

  put(record: ExtensionRecord): void {
    const known = this.#byKey.get(record.key);
    if (known !== undefined && !isNewer(record, known.record)) return;
    const [category = '', name = ''] = record.extensionId.split('/');
    const entry: Entry = { record, category, name, number: known?.number ?? this.#entries.length };
    this.#entries[entry.number] = entry;
    this.#byKey.set(record.key, entry);
    if (known?.record.description !== record.description) this.#words.put(entry.number, wordsOfEntry(entry));
    this.#ordered = null;
  }

  /** It is there no more. */
  remove(key: string): void {
    const known = this.#byKey.get(key);
    if (known === undefined) return;
    this.#byKey.delete(key);
    this.#entries[known.number] = undefined;
    this.#words.put(known.number, { weights: new Map(), isPublic: false });
    this.#ordered = null;
  }

  /** Downloads have changed: so has the order of equals. */
  reorder(): void {
    this.#ordered = null;
  }

  search({ tenant, query, category, limit }: SearchQuestion): ExtensionView[] {
    const words = wordsOf(query);
    const fits = (entry: Entry): boolean =>
      sees(entry, tenant) && (category === undefined || entry.category === category);
    const found =
      words.length === 0 ? firstOf(this.#inOrder(), fits, limit) : this.#matching(words, fits, tenant, limit);
    return found.map(({ record }) => extensionView(record, this.#downloads(record.key)));
  }

  /** Ids that may have been meant by one that nobody has, or that the tenant does not see; the best first. */
  candidates(extensionId: string, tenant: string | null): string[] {
    const seen = [...this.#byKey.values()].filter((entry) => sees(entry, tenant));
    const [, name = ''] = extensionId.split('/');
    const nearName = nearest(
      name,
      seen.map((entry) => entry.name),
    );
    const partly = (entry: Entry): boolean =>
      Math.min(entry.name.length, name.length) >= PART_LENGTH_MIN &&
      (entry.name.includes(name) || name.includes(entry.name));
    const found = [(entry: Entry) => entry.name === name, (entry: Entry) => entry.name === nearName, partly].flatMap(
      (fits) => seen.filter(fits),
    );
    const ids = found.map(({ record }) => record.extensionId);
    return [...new Set(ids)].slice(0, CANDIDATES_MAX);
  }

  /** All words, the last one perhaps unfinished; where nothing has them all, whatever has some of them, or of the nearest ones. */
  #matching(words: readonly string[], fits: (entry: Entry) => boolean, tenant: string | null, limit: number): Entry[] {
    const exact = this.#best(this.#words.all(words), fits, limit);
    if (exact.length > 0) return exact;
    const isSeen = (document: number): boolean => {
      const entry = this.#entries[document];
      return entry !== undefined && sees(entry, tenant);
    };
    let known: string[] | undefined;
    const meant = words.flatMap((word) => {
      if (this.#words.has(word, isSeen)) return [word];
      known ??= [...this.#words.words(isSeen)];
      return nearest(word, known) ?? [];
    });
    return this.#best(this.#words.some(meant), fits, limit);
  }

  /** Picks the best of all scored entries, without sorting those that are not among them. */
  #best(scores: Float64Array, fits: (entry: Entry) => boolean, limit: number): Entry[] {
    const best: Scored[] = [];
    for (let number = 0; number < scores.length; number++) {
      const score = scores[number] ?? 0;
      const worst = best.length === limit ? best.at(-1) : undefined;
      if (score === 0 || (worst !== undefined && score < worst.score)) continue;
      const entry = this.#entries[number];
      if (entry === undefined || !fits(entry)) continue;
      const scored = { entry, score };
      const at = best.findLastIndex((each) => this.#compareScored(each, scored) < 0) + 1;
      if (at === limit) continue;
      best.splice(at, 0, scored);
      if (best.length > limit) best.pop();
    }
    return best.map(({ entry }) => entry);
  }

  #inOrder(): readonly Entry[] {
    this.#ordered ??= [...this.#byKey.values()].sort((a, b) => this.#compare(a, b));
    return this.#ordered;
  }

  #compareScored(a: Scored, b: Scored): number {
    return b.score - a.score || this.#compare(a.entry, b.entry);
  }

  #compare(a: Entry, b: Entry): number {
    const [idA, idB] = [a.record.extensionId, b.record.extensionId];
    return (
      this.#downloads(b.record.key) - this.#downloads(a.record.key) ||
      (idA < idB ? -1 : idA > idB ? 1 : a.record.scope < b.record.scope ? -1 : 1)
    );
  }
}

interface Scored {
  readonly entry: Entry;
  readonly score: number;
}

function sees({ record }: Entry, tenant: string | null): boolean {
  return record.scope === '' || record.scope === tenant;
}

function firstOf(entries: readonly Entry[], fits: (entry: Entry) => boolean, limit: number): Entry[] {
  const found: Entry[] = [];
  for (const entry of entries) {
    if (!fits(entry)) continue;
    found.push(entry);
    if (found.length === limit) break;
  }
  return found;
}

/** A word weighs more in a field of few words: `node` is more of `build/node` than of `build/node-legacy-tools`. */
function wordsOfEntry({ record, name, category }: Entry): IndexedWords {
  const weights = new Map<string, number>();
  for (const [field, text] of [
    ['name', name],
    ['category', category],
    ['description', record.description],
  ] as const) {
    const words = new Set(splitWords(text));
    for (const word of words) weights.set(word, (weights.get(word) ?? 0) + BOOST[field] / Math.sqrt(words.size));
  }
  return { weights, isPublic: record.scope === '' };
}

function wordsOf(query: string): string[] {
  return splitWords(query.slice(0, QUERY_LENGTH_MAX)).slice(0, WORDS_MAX);
}

function splitWords(text: string): string[] {
  return text
    .toLowerCase()
    .split(/[^\p{L}\p{N}]+/u)
    .filter((word) => word !== '');
}
