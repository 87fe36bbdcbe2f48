/** Cookies of a login that is under way: short-lived, unreadable by scripts, sent back to us alone and on navigation only. */
import type { FastifyRequest } from 'fastify';

export interface CookieOptions {
  readonly path: string;
  readonly maxAgeSecs: number;
  /** Where the service is reached over https. */
  readonly secure: boolean;
}

/** Lax, not Strict: the provider sends the browser back from another site. */
export function setCookie(name: string, value: string, { path, maxAgeSecs, secure }: CookieOptions): string {
  return `${name}=${value}; Path=${path}; Max-Age=${maxAgeSecs}; HttpOnly; SameSite=Lax${secure ? '; Secure' : ''}`;
}

export function clearCookie(name: string, options: Omit<CookieOptions, 'maxAgeSecs'>): string {
  return setCookie(name, '', { ...options, maxAgeSecs: 0 });
}

/** The first of that name; undefined: none. */
export function cookieOf(request: FastifyRequest, name: string): string | undefined {
  for (const pair of (request.headers.cookie ?? '').split(';')) {
    const at = pair.indexOf('=');
    if (at > 0 && pair.slice(0, at).trim() === name) return pair.slice(at + 1).trim();
  }
  return undefined;
}
