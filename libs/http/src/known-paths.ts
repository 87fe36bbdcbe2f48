/** Which methods each path has, learned from the routes themselves, to tell a wrong method (405) from a wrong path (404). */

interface KnownPath {
  readonly pattern: RegExp;
  readonly methods: Set<string>;
}

export class KnownPaths {
  readonly #paths = new Map<string, KnownPath>();

  /** `url` as in a route: `/pipeline/:id/logs`. */
  add(url: string, methods: readonly string[]): void {
    let path = this.#paths.get(url);
    if (path === undefined) {
      const pattern = url.split('/').map((part) => (part.startsWith(':') ? '[^/]+' : RegExp.escape(part))).join('/');
      path = { pattern: new RegExp(`^${pattern}$`, 'u'), methods: new Set(['OPTIONS']) };
      this.#paths.set(url, path);
    }
    for (const method of methods) path.methods.add(method);
  }

  /** The value of `Allow` for this path (without its query), or null where there is none. */
  allowOf(path: string): string | null {
    for (const known of this.#paths.values()) {
      if (known.pattern.test(path)) return [...known.methods].sort().join(', ');
    }
    return null;
  }
}
