/** Inserts of which there may be so many, of a tenant, a user, a repository. */
import type { Collection, CollectionSpec, DocumentOf, Scalar, Selection } from './port.ts';

/** How many of those that `where` selects there may be. */
export interface Limit<S extends CollectionSpec> {
  readonly where: NonNullable<Selection<S>['where']>;
  /** Where an index answers `where` by this order alone. */
  readonly orderBy?: Selection<S>['orderBy'];
  readonly max: number;
  readonly refusal: () => Error;
}

const PAGE = 1_000;

/**
 * Inserts a document unless there would be more with it than one of the limits allows, however many are inserted at the same moment: throws
 * that one's refusal. One that finds too many with itself goes again, so near the limit each of two may be refused. A process that ends
 * in between leaves one too many.
 */
export async function insertWithin<S extends CollectionSpec>(
  collection: Collection<S>,
  document: DocumentOf<S>,
  ...limits: readonly Limit<S>[]
): Promise<'inserted' | 'duplicate'> {
  for (const limit of limits) if (await hasMoreThan(collection, limit, limit.max - 1)) throw limit.refusal();
  if ((await collection.insert(document)) === 'duplicate') return 'duplicate';
  for (const limit of limits) {
    if (!(await hasMoreThan(collection, limit, limit.max))) continue;
    await collection.delete(document.id);
    throw limit.refusal();
  }
  return 'inserted';
}

async function hasMoreThan<S extends CollectionSpec>(
  collection: Collection<S>,
  { where, orderBy }: Limit<S>,
  count: number,
): Promise<boolean> {
  let seen = 0;
  for (let after: Selection<S>['after']; seen <= count;) {
    const limit = Math.min(PAGE, count + 1 - seen);
    const page = await collection.list({ where, orderBy, limit, after, parts: [] });
    seen += page.length;
    const last = page.at(-1);
    if (last === undefined || page.length < limit) break;
    after = { id: last.id, ...(orderBy === undefined ? {} : { value: last[orderBy.field] as Scalar }) };
  }
  return seen > count;
}
