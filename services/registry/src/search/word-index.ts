/**
 * Words to the documents that have them, in memory: which documents have all words of a question, and how well. Documents are
 * small numbers of the caller's, given out from 0 on without gaps.
 *
 * Scores are kept in arrays over all documents: with ten thousand of them that is a few microseconds a word, and nothing is
 * allocated for a hit. How rare a word is, is counted in public documents only: what is private to somebody changes nobody
 * else's order.
 */

interface Posting {
  /** Ascending. */
  readonly documents: number[];
  /** How much of the document the word is, in the same order. */
  readonly weights: number[];
  publicDocuments: number;
}

export interface IndexedWords {
  /** Each word with its weight. */
  readonly weights: ReadonlyMap<string, number>;
  readonly isPublic: boolean;
}

/** How much a word counts that only begins like the one asked for. */
const PREFIX_FACTOR = 0.6;

export class WordIndex {
  readonly #postings = new Map<string, Posting>();
  /** All words in the order of their code units, for beginnings. */
  readonly #sorted: string[] = [];
  readonly #documents: IndexedWords[] = [];
  #publicDocuments = 0;

  put(document: number, words: IndexedWords): void {
    const before = this.#documents[document];
    if (before !== undefined) this.#remove(document, before);
    this.#documents[document] = words;
    if (words.isPublic) this.#publicDocuments += 1;
    for (const [word, weight] of words.weights) {
      const posting = this.#postingOf(word);
      const at = placeIn(posting.documents, document);
      posting.documents.splice(at, 0, document);
      posting.weights.splice(at, 0, weight);
      if (words.isPublic) posting.publicDocuments += 1;
    }
  }

  /** A score for each document; 0: it has not all of the words. The last word may be unfinished. */
  all(words: readonly string[]): Float64Array {
    const total = this.#scoresOf(words.at(-1) ?? '', true);
    for (const word of words.slice(0, -1)) {
      const scores = this.#scoresOf(word, false);
      for (let document = 0; document < total.length; document++) {
        const score = scores[document] ?? 0;
        total[document] = score === 0 || total[document] === 0 ? 0 : (total[document] ?? 0) + score;
      }
    }
    return total;
  }

  /** The same; 0: it has none of them, finished or not. */
  some(words: readonly string[]): Float64Array {
    const total = new Float64Array(this.#documents.length);
    for (const word of words) {
      const scores = this.#scoresOf(word, true);
      for (let document = 0; document < total.length; document++)
        total[document] = (total[document] ?? 0) + (scores[document] ?? 0);
    }
    return total;
  }

  /** Whether a word, or one that begins so, is in a document that is seen. */
  has(word: string, isSeen: (document: number) => boolean): boolean {
    for (const { posting } of this.#matches(word, true)) if (posting.documents.some(isSeen)) return true;
    return false;
  }

  /** Every word in a document that is seen. */
  *words(isSeen: (document: number) => boolean): Generator<string, void> {
    for (const [word, { documents }] of this.#postings) if (documents.some(isSeen)) yield word;
  }

  #scoresOf(word: string, isUnfinished: boolean): Float64Array {
    const scores = new Float64Array(this.#documents.length);
    for (const { posting, factor } of this.#matches(word, isUnfinished)) {
      const { documents, weights, publicDocuments } = posting;
      const rarity = factor * Math.log(1 + (this.#publicDocuments - publicDocuments + 0.5) / (publicDocuments + 0.5));
      for (let at = 0; at < documents.length; at++) {
        const document = documents[at] ?? 0;
        const score = rarity * (weights[at] ?? 0);
        if (score > (scores[document] ?? 0)) scores[document] = score;
      }
    }
    return scores;
  }

  *#matches(
    word: string,
    isUnfinished: boolean,
  ): Generator<{ readonly posting: Posting; readonly factor: number }, void> {
    const exact = this.#postings.get(word);
    if (exact !== undefined) yield { posting: exact, factor: 1 };
    if (!isUnfinished || word === '') return;
    for (let at = placeIn(this.#sorted, word); at < this.#sorted.length; at++) {
      const longer = this.#sorted[at] ?? '';
      if (!longer.startsWith(word)) return;
      const posting = longer === word ? undefined : this.#postings.get(longer);
      if (posting !== undefined) yield { posting, factor: (PREFIX_FACTOR * word.length) / longer.length };
    }
  }

  #postingOf(word: string): Posting {
    let posting = this.#postings.get(word);
    if (posting === undefined) {
      posting = { documents: [], weights: [], publicDocuments: 0 };
      this.#postings.set(word, posting);
      this.#sorted.splice(placeIn(this.#sorted, word), 0, word);
    }
    return posting;
  }

  #remove(document: number, words: IndexedWords): void {
    if (words.isPublic) this.#publicDocuments -= 1;
    for (const word of words.weights.keys()) {
      const posting = this.#postings.get(word);
      if (posting === undefined) continue;
      const at = placeIn(posting.documents, document);
      posting.documents.splice(at, 1);
      posting.weights.splice(at, 1);
      if (words.isPublic) posting.publicDocuments -= 1;
      if (posting.documents.length > 0) continue;
      this.#postings.delete(word);
      this.#sorted.splice(placeIn(this.#sorted, word), 1);
    }
  }
}

/** Where it stands, or would stand. */
function placeIn<T extends string | number>(sorted: readonly T[], value: T): number {
  let [low, high] = [0, sorted.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((sorted[middle] as T) < value) low = middle + 1;
    else high = middle;
  }
  return low;
}
