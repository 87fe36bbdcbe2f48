/** What of a file was translated and what was not. */
import type { SourceMap, SourceNode } from './source.ts';

/** Something that the translated file does not say. */
export interface Note {
  /** In the file that was translated. */
  readonly line: number;
  readonly what: string;
  readonly remedy?: string;
}

export class Ledger {
  readonly #notes: Note[] = [];
  readonly #told = new Set<string>();

  tell(line: number, what: string, remedy?: string): void {
    const place = `${line} ${what}`;
    if (this.#told.has(place)) return;
    this.#told.add(place);
    this.#notes.push(remedy === undefined ? { line, what } : { line, what, remedy });
  }

  /** Whatever nobody has asked for is told, so that nothing is dropped in silence (SOURCE-1). */
  tellRest(root: SourceMap, path = ''): void {
    this.#tellRest(root, path);
  }

  /** By line. */
  get notes(): readonly Note[] {
    return this.#notes.toSorted((a, b) => a.line - b.line);
  }

  #tellRest(node: SourceNode, path: string): void {
    if (node.kind === 'list') for (const item of node.items) this.#tellRest(item, path);
    if (node.kind !== 'map') return;
    for (const entry of node.entries) {
      const place = path === '' ? entry.key : `${path}.${entry.key}`;
      if (entry.seen) this.#tellRest(entry.value, place);
      else this.tell(entry.line, `'${place}' has no counterpart here`);
    }
  }
}

/** Entries of maps, however deep: what a file says. */
export function countEntries(node: SourceNode): number {
  if (node.kind === 'list') return node.items.reduce((sum, item) => sum + countEntries(item), 0);
  if (node.kind === 'text') return 0;
  return node.entries.reduce((sum, { value }) => sum + 1 + countEntries(value), 0);
}
