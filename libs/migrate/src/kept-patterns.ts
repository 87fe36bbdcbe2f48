/** A folder is named by what is in it. */
export function keptPatterns(path: string): readonly string[] {
  if (path === '.' || path === '') return ['**'];
  return /[*?]/.test(path) || /\.\w{1,5}$/.test(path) ? [path] : [path, `${path}/**`];
}
