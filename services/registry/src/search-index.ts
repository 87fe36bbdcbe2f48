/**
 * The index in memory that searches are answered from, rebuilt from the store at the start and kept up by messages between
 * registries. It owns copies only: what is in it may lag behind the store by moments, and nothing but searching reads it.
 *
 * S1 An entry is replaced only by one of a higher generation, so that news in the wrong order do no harm.
 * S2 An entry of another tenant's scope is in no answer: not as a result, not as a candidate, not in a count.
 * S3 The order is total: relevance, then downloads, then the id. The same index answers the same question alike.
 */
import MiniSearch from 'minisearch';
import type { ExtensionView } from '@penstock/extension';
import { extensionView, type ExtensionRecord } from './records.ts';

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
/** A hit in the name says far more than one in the description. */
const BOOST = { name: 4, category: 1.5, description: 1 };
/** Letters that may be wrong in a word, as part of its length: two in `secrets-scam`. */
const FUZZY = 0.25;

export class SearchIndex {
  readonly #entries = new Map<string, Entry>();
  readonly #byNumber = new Map<number, Entry>();
  readonly #downloads: (key: string) => number;
  #next = 0;
  /** All entries in the order of a blank question; null: to be made anew. */
  #ordered: readonly Entry[] | null = null;
  readonly #words = new MiniSearch<Entry>({
    idField: 'number',
    fields: ['name', 'category', 'description'],
    extractField: (entry, field) => (field === 'description' ? entry.record.description : entry[field as 'name' | 'category' | 'number']) as string,
    searchOptions: { boost: BOOST },
  });

  /** `downloads`: how often an extension was downloaded, by its key. */
  constructor(downloads: (key: string) => number) {
    this.#downloads = downloads;
  }

  get size(): number {
    return this.#entries.size;
  }

  put(record: ExtensionRecord): void {
    const known = this.#entries.get(record.key);
    if (known !== undefined && known.record.generation >= record.generation) return;
    const [category = '', name = ''] = record.extensionId.split('/');
    const sameWords = known !== undefined && known.record.description === record.description;
    const entry: Entry = { record, category, name, number: sameWords ? known.number : this.#next++ };
    if (!sameWords) {
      if (known !== undefined) {
        this.#words.discard(known.number);
        this.#byNumber.delete(known.number);
      }
      this.#words.add(entry);
    }
    this.#entries.set(record.key, entry);
    this.#byNumber.set(entry.number, entry);
    this.#ordered = null;
  }

  /** Downloads have changed: so has the order of equals. */
  reorder(): void {
    this.#ordered = null;
  }

  search({ tenant, query, category, limit }: SearchQuestion): ExtensionView[] {
    const words = wordsOf(query);
    const fits = (entry: Entry): boolean => sees(entry, tenant) && (category === undefined || entry.category === category);
    const found = words.length === 0 ? firstOf(this.#inOrder(), fits, limit) : this.#matching(words, fits, limit);
    return found.map(({ record }) => extensionView(record, this.#downloads(record.key)));
  }

  /** Ids that may have been meant by one that nobody has, or that the tenant does not see. */
  candidates(extensionId: string, tenant: string | null): string[] {
    const fits = (entry: Entry): boolean => sees(entry, tenant) && entry.record.extensionId !== extensionId;
    const [, name = ''] = extensionId.split('/');
    const found = this.#ranked(name, { prefix: true, fuzzy: FUZZY, combineWith: 'OR', fields: ['name'] }, fits, CANDIDATES_MAX);
    return [...new Set(found.map(({ record }) => record.extensionId))];
  }

  /** All words, the last one perhaps unfinished; where nothing has them all, whatever is near to some of them. */
  #matching(words: readonly string[], fits: (entry: Entry) => boolean, limit: number): Entry[] {
    const text = words.join(' ');
    const last = words.length - 1;
    const exact = this.#ranked(text, { combineWith: 'AND', prefix: (_term: string, index: number) => index === last }, fits, limit);
    return exact.length > 0 ? exact : this.#ranked(text, { combineWith: 'OR', prefix: true, fuzzy: FUZZY }, fits, limit);
  }

  #ranked(text: string, options: NonNullable<Parameters<MiniSearch<Entry>['search']>[1]>, fits: (entry: Entry) => boolean, limit: number): Entry[] {
    const scored: Scored[] = [];
    for (const { id, score } of this.#words.search(text, options)) {
      const entry = this.#byNumber.get(id as number);
      if (entry === undefined || !fits(entry)) continue;
      scored.push({ entry, score });
    }
    return scored.toSorted((a, b) => b.score - a.score || this.#compare(a.entry, b.entry)).slice(0, limit).map(({ entry }) => entry);
  }

  #inOrder(): readonly Entry[] {
    this.#ordered ??= [...this.#entries.values()].toSorted((a, b) => this.#compare(a, b));
    return this.#ordered;
  }

  #compare(a: Entry, b: Entry): number {
    const [idA, idB] = [a.record.extensionId, b.record.extensionId];
    return this.#downloads(b.record.key) - this.#downloads(a.record.key) || (idA < idB ? -1 : idA > idB ? 1 : a.record.scope < b.record.scope ? -1 : 1);
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

/** As the index divides texts: letters and digits. */
function wordsOf(query: string): string[] {
  return query.slice(0, QUERY_LENGTH_MAX).toLowerCase().split(/[^\p{L}\p{N}]+/u).filter((word) => word !== '').slice(0, WORDS_MAX);
}
