/**
 * Cross-origin requests, for the origins that were listed and no others. Origins are compared as whole strings: no
 * wildcards, no subdomains, never `null`.
 */

/** How long a browser may keep a preflight's answer. */
const PREFLIGHT_SECS = 3600;

export class CorsPolicy {
  readonly #origins: ReadonlySet<string>;

  /** Throws a RangeError that names an entry which is no origin. */
  constructor(origins: readonly string[]) {
    this.#origins = new Set(origins.map(checkedOrigin));
  }

  get enabled(): boolean {
    return this.#origins.size > 0;
  }

  /** Headers for any response to a request that came with this `Origin`. */
  headersFor(origin: string | undefined): Record<string, string> {
    if (!this.enabled) return {};
    // Also without an allowed origin: a cache must not give one origin's answer to another.
    if (origin === undefined || !this.#origins.has(origin)) return { Vary: 'Origin' };
    return {
      Vary: 'Origin',
      'Access-Control-Allow-Origin': origin,
      'Access-Control-Expose-Headers': 'Retry-After, X-RateLimit-Limit, X-RateLimit-Remaining, X-Request-Id',
    };
  }

  /** Further headers for a preflight; null where the origin is not allowed. */
  preflightHeadersFor(origin: string | undefined): Record<string, string> | null {
    if (origin === undefined || !this.#origins.has(origin)) return null;
    return {
      'Access-Control-Allow-Methods': 'GET, POST, OPTIONS',
      'Access-Control-Allow-Headers': 'Content-Type, Authorization',
      'Access-Control-Max-Age': String(PREFLIGHT_SECS),
    };
  }
}

function checkedOrigin(text: string): string {
  const candidate = text.trim().replace(/\/$/u, '');
  let origin: string;
  try {
    origin = new URL(candidate).origin;
  } catch {
    origin = 'null';
  }
  if (origin === 'null' || origin !== candidate) {
    throw new RangeError(
      `'${text}' is not an origin that can be allowed: write scheme, host and port only, as in https://ci.example.com`,
    );
  }
  return origin;
}
