/** Under which key an extension is kept, so that names that look alike meet in one document. */

/** What is easily taken for one another in one font or the other, or heard alike; hyphens do not count (`no-de` is `node`). */
const LOOK_ALIKES: readonly (readonly [RegExp, string])[] = [
  [/-/g, ''],
  [/rn/g, 'm'],
  [/vv/g, 'w'],
  [/cl/g, 'd'],
  [/0/g, 'o'],
  [/[1i]/g, 'l'],
  [/5/g, 's'],
  [/8/g, 'b'],
  [/2/g, 'z'],
];

/** Equal for names that differ in look-alike characters only. Names are lower-case ASCII letters, digits and hyphens already. */
function lookAlikeForm(extensionId: string): string {
  const [category = '', name = ''] = extensionId.split('/');
  return `${category}/${LOOK_ALIKES.reduce((form, [pattern, replacement]) => form.replace(pattern, replacement), name)}`;
}

/** `scope`: '' for public ones, else the tenant. */
export function extensionKey(scope: string, extensionId: string): string {
  return `${scope}|${lookAlikeForm(extensionId)}`;
}
