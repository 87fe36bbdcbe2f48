/**
 * The routes of a server, learned from the routes themselves: to tell a wrong method (405) from a wrong path (404), and for
 * tests that visit all of them.
 */
import type { FastifyInstance } from 'fastify';
import type { RequestTier } from './rate-limits.ts';

export interface KnownRoute {
  /** As it was registered: `/pipeline/:id/logs`, `/assets/*`. */
  readonly url: string;
  readonly methods: readonly string[];
  /** Undefined is a mistake: a request to it would be counted by its method. */
  readonly tier: RequestTier | undefined;
  /** Undefined: that of the server. */
  readonly bodyBytesMax: number | undefined;
}

interface KnownPath {
  readonly pattern: RegExp;
  readonly methods: Set<string>;
}

export class KnownRoutes {
  readonly all: KnownRoute[] = [];
  readonly #paths = new Map<string, KnownPath>();

  add(route: KnownRoute): void {
    this.all.push(route);
    let path = this.#paths.get(route.url);
    if (path === undefined) {
      path = { pattern: patternOf(route.url), methods: new Set(['OPTIONS']) };
      this.#paths.set(route.url, path);
    }
    for (const method of route.methods) path.methods.add(method);
  }

  /** The value of `Allow` for this path (without its query), or null where there is none. */
  allowOf(path: string): string | null {
    const methods = [...this.#paths.values()]
      .filter(({ pattern }) => pattern.test(path))
      .flatMap((known) => [...known.methods]);
    return methods.length === 0 ? null : [...new Set(methods)].sort().join(', ');
  }
}

const KNOWN = new WeakMap<FastifyInstance, KnownRoutes>();

export function rememberRoutes(app: FastifyInstance, routes: KnownRoutes): void {
  KNOWN.set(app, routes);
}

/** All routes of a server that `buildServer` has made, in the order of their registration. */
export function routesOf(app: FastifyInstance): readonly KnownRoute[] {
  return KNOWN.get(app)?.all ?? [];
}

function patternOf(url: string): RegExp {
  const parts = url
    .split('/')
    .map((part) => (part.startsWith(':') ? '[^/]+' : part === '*' ? '.*' : RegExp.escape(part)));
  return new RegExp(`^${parts.join('/')}$`, 'u');
}
