/** Lists in which a document that is damaged costs itself alone. */
import { isDamage } from './errors.ts';
import {
  PLACES,
  type Collection,
  type CollectionSpec,
  type DocumentOf,
  type PartName,
  type Selection,
} from './port.ts';

/** A document that cannot be read: its fields, as far as they are what they are declared to be. */
interface UnreadableDocument<S extends CollectionSpec> {
  readonly place: DocumentOf<S, never>;
  /** Why. */
  readonly unreadable: Error;
}

interface ReadableList<S extends CollectionSpec, P extends PartName<S>> {
  /** In the order of the list; what was deleted while it was read is left out. */
  readonly documents: readonly (DocumentOf<S, P> | UnreadableDocument<S>)[];
  /** The list goes on behind it; undefined: nothing is behind them, whatever its limit. */
  readonly last: DocumentOf<S, never> | undefined;
}

/** Of a list with a document that is damaged each is read by itself. */
export async function listReadable<S extends CollectionSpec, P extends PartName<S> = PartName<S>>(
  collection: Collection<S>,
  selection: Selection<S, P>,
): Promise<ReadableList<S, P>> {
  const lastOf = (rows: readonly DocumentOf<S, never>[]) => (rows.length < selection.limit ? undefined : rows.at(-1));
  try {
    const documents = await collection.list(selection);
    return { documents, last: lastOf(documents) };
  } catch (error) {
    if (!isDamage(error)) throw error;
  }
  const places = await collection.list<never>({ ...selection, ...PLACES });
  const documents: (DocumentOf<S, P> | UnreadableDocument<S>)[] = [];
  for (const place of places) {
    try {
      const document = await collection.get(place.id, { parts: selection.parts });
      if (document !== null) documents.push(document);
    } catch (error) {
      if (!isDamage(error)) throw error;
      documents.push({ place, unreadable: error });
    }
  }
  return { documents, last: lastOf(places) };
}
