/** Under which key an extension is kept, so that names that look alike meet in one document. */

/** What is easily taken for one another in one font or the other, or heard alike; hyphens do not count (`no-de` is `node`). */
const LOOK_ALIKES: readonly (readonly [RegExp, string])[] = [
  [/-/g, ''],
  [/0/g, 'o'],
  [/[1i]/g, 'l'],
  [/5/g, 's'],
  [/8/g, 'b'],
  [/2/g, 'z'],
  // Pairs come after the single characters, or c1 and ci would not be what cl is.
  [/rn/g, 'm'],
  [/vv/g, 'w'],
  [/cl/g, 'd'],
];

/** The last of the list. */
const PAIRS = 3;

/** Equal for names that differ in look-alike characters only. Names are lower-case ASCII letters, digits and hyphens already. */
function lookAlikeForm(extensionId: string): string {
  const [category = '', name = ''] = extensionId.split('/');
  return `${category}/${LOOK_ALIKES.reduce((form, [pattern, replacement]) => form.replace(pattern, replacement), name)}`;
}

/** The key of a key that an earlier release made, which looked at pairs before single characters. */
export function presentKey(key: string): string {
  const at = key.lastIndexOf('|') + 1;
  return `${key.slice(0, at)}${lookAlikeForm(key.slice(at))}`;
}

/** Under which an earlier release kept the extension; the same as `extensionKey` for most names. */
export function earlierKey(scope: string, extensionId: string): string {
  const [category = '', name = ''] = extensionId.split('/');
  const [hyphens, ...rest] = LOOK_ALIKES;
  const pairsFirst = [hyphens, ...rest.slice(-PAIRS), ...rest.slice(0, -PAIRS)].filter((rule) => rule !== undefined);
  const form = pairsFirst.reduce((text, [pattern, replacement]) => text.replace(pattern, replacement), name);
  return `${scope}|${category}/${form}`;
}

/** `scope`: '' for public ones, else the tenant. */
export function extensionKey(scope: string, extensionId: string): string {
  return `${scope}|${lookAlikeForm(extensionId)}`;
}
