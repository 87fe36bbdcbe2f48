/** A table by names that strangers choose: `constructor` is not in it unless somebody has put it there. */
export function lookup<T>(entries: Readonly<Record<string, T>>): Readonly<Record<string, T>> {
  return Object.assign(Object.create(null) as Record<string, T>, entries);
}
