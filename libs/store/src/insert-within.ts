/** Inserts of which there may be so many, of a tenant, a user, a repository. */
import type { Collection, CollectionSpec, DocumentOf, Selection } from './port.ts';

/**
 * Inserts a document unless more than `max` of those that `where` selects would be there with it, however many are inserted at the same moment:
 * one that finds too many with itself goes again, so near the limit each of two may be refused. A process that ends in between
 * leaves one too many. `max`: 999 at most, since a list has no more than one beyond that.
 */
export async function insertWithin<S extends CollectionSpec>(
  collection: Collection<S>,
  document: DocumentOf<S>,
  { where, max }: { readonly where: NonNullable<Selection<S>['where']>; readonly max: number },
): Promise<'inserted' | 'duplicate' | 'full'> {
  const count = async (): Promise<number> => (await collection.list({ where, limit: max + 1, parts: [] })).length;
  if ((await count()) >= max) return 'full';
  if ((await collection.insert(document)) === 'duplicate') return 'duplicate';
  if ((await count()) <= max) return 'inserted';
  await collection.delete(document.id);
  return 'full';
}
