/** Looks for a ref in one place after the other where a repository may be. */
import { Unavailable } from '@penstock/errors';
import type { CloneCredential } from '@penstock/git';
import { gitCodeOf } from '../model/errors.ts';
import type { RefSource } from '../model/ports.ts';

interface FoundRef<Place> {
  readonly place: Place;
  readonly ref: string;
  readonly commit: string;
}

/**
 * The first that has one of the refs, which are looked for in their order. Null: none has, or it is not to be seen. @throws Unavailable
 * where one that did not answer may have it
 */
export async function findInPlaces<Place extends { readonly url: string }>(
  places: readonly Place[],
  names: readonly string[],
  refs: RefSource,
  { key, credential }: { readonly key: string; readonly credential?: CloneCredential | undefined },
): Promise<FoundRef<Place> | null> {
  let away: unknown;
  for (const place of places) {
    try {
      for (const ref of names) {
        const commit = await refs.findRef({ url: place.url, ref, key, credential });
        if (commit !== null) return { place, ref, commit };
      }
    } catch (error) {
      const code = gitCodeOf(error);
      if (code === null || code === 'git_unusable') throw error;
      if (code === 'unreachable' || code === 'timeout') away = error;
    }
  }
  if (away !== undefined)
    throw new Unavailable('The git host does not answer at the moment; try again.', { cause: away });
  return null;
}
