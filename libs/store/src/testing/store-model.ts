/** What a collection does, in the simplest words: a map, filters and sorts. The suite holds every adapter to it. */
import type { KnownVersion } from '../port.ts';

export interface ModelDocument {
  readonly id: string;
  readonly owner: string;
  readonly rank: number;
  readonly open: boolean;
  readonly major: number;
  readonly minor: number;
  readonly text: string;
  readonly note: string;
}

export interface ModelSelection {
  readonly where: Readonly<Record<string, unknown>>;
  readonly orderBy: { readonly field: 'id' | 'rank'; readonly direction: 'asc' | 'desc' };
  readonly limit: number;
  readonly after?: { readonly id: string; readonly value?: string | number } | undefined;
}

export class StoreModel {
  readonly documents = new Map<string, ModelDocument>();

  insert(document: ModelDocument): 'inserted' | 'duplicate' {
    if (this.documents.has(document.id)) return 'duplicate';
    this.documents.set(document.id, document);
    return 'inserted';
  }

  replaceNewer(documents: readonly ModelDocument[]): { readonly stale: readonly string[] } {
    const stale: string[] = [];
    for (const document of documents) {
      const stored = this.documents.get(document.id);
      if (stored !== undefined && (document.major - stored.major || document.minor - stored.minor) <= 0)
        stale.push(document.id);
      else this.documents.set(document.id, document);
    }
    return { stale };
  }

  list({ where, orderBy, limit, after }: ModelSelection): ModelDocument[] {
    const sign = orderBy.direction === 'asc' ? 1 : -1;
    const order = (a: ModelDocument, b: ModelDocument) =>
      sign * (compare(a[orderBy.field], b[orderBy.field]) || compare(a.id, b.id));
    return [...this.documents.values()]
      .filter((document) =>
        Object.entries(where).every(([field, condition]) => meets(document[field as keyof ModelDocument], condition)),
      )
      .filter(
        (document) =>
          after === undefined ||
          order(document, {
            ...document,
            id: after.id,
            ...(orderBy.field === 'id' ? {} : { rank: Number(after.value) }),
          }) > 0,
      )
      .toSorted(order)
      .slice(0, limit);
  }

  listFresh(
    selection: ModelSelection,
    { known, freshMax }: { readonly known: readonly KnownVersion[]; readonly freshMax: number },
  ): { readonly documents: readonly (ModelDocument | KnownVersion)[]; readonly isLast: boolean } {
    const documents: (ModelDocument | KnownVersion)[] = [];
    const listed = this.list(selection);
    let fresh = 0;
    for (const document of listed) {
      const { id, major, minor } = document;
      const isKnown = known.some((version) => version[0] === id && version[1] === major && version[2] === minor);
      if (!isKnown && ++fresh > freshMax) return { documents, isLast: false };
      documents.push(isKnown ? [id, major, minor] : document);
    }
    return { documents, isLast: listed.length < selection.limit };
  }

  deleteWhere(selection: Omit<ModelSelection, 'after'>): number {
    const doomed = this.list(selection);
    for (const { id } of doomed) this.documents.delete(id);
    return doomed.length;
  }
}

/** Strings by code points, as databases do; JavaScript's `<` goes by UTF-16 units. */
export function compare(a: string | number | boolean, b: string | number | boolean): number {
  if (typeof a === 'string' && typeof b === 'string') return Buffer.compare(Buffer.from(a), Buffer.from(b));
  return Number(a) - Number(b);
}

function meets(value: string | number | boolean, condition: unknown): boolean {
  if (typeof condition !== 'object' || condition === null) return value === condition;
  if ('in' in condition) return (condition.in as unknown[]).includes(value);
  return Object.entries(condition).every(([bound, limit]) => {
    const order = compare(value, limit as string | number);
    return bound === 'gt' ? order > 0 : bound === 'gte' ? order >= 0 : bound === 'lt' ? order < 0 : order <= 0;
  });
}
