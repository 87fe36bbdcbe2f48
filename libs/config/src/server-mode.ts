/** Development or production: decided by who can reach the server, and by SERVICE_MODE. */
import type { ListenAddress } from './kinds.ts';

export type ServerMode = 'development' | 'production';

export interface Reachability {
  readonly listen: ListenAddress;
  readonly mode?: ServerMode | undefined;
  /** Under which clients reach the server, where it is not the address that it listens on. */
  readonly baseUrl?: string | undefined;
  /** Proxies that are believed. */
  readonly trustProxy?: readonly string[] | undefined;
}

/**
 * Development where nobody but this machine reaches the server and nobody says otherwise: it listens on a loopback
 * address, its base URL is one too, and no proxy stands before it (with SERVICE_MODE=development one on this machine
 * may). Null: development was asked for on a server that others can reach, which would hand them one with generated
 * secrets; the start is to be refused.
 */
export function serverMode(options: Reachability): ServerMode | null {
  if (options.mode === 'production') return 'production';
  if (publicReason(options) === null) return 'development';
  return options.mode === 'development' ? null : 'production';
}

/** Why others can reach the server, as the rest of a sentence that begins with "because"; null where they cannot. */
export function publicReason({ listen, mode, baseUrl, trustProxy = [] }: Reachability): string | null {
  if (!isLoopback(listen.host)) return `it listens on ${listen.host}`;
  if (baseUrl !== undefined && !isLoopback(hostOf(baseUrl))) return `SERVICE_BASE_URL is ${baseUrl}`;
  const proxies = mode === 'development' ? trustProxy.filter((range) => !isLoopback(range)) : trustProxy;
  if (proxies.length > 0) return `SERVICE_TRUST_PROXY names ${proxies[0]}`;
  return null;
}

/** Names other than `localhost` may resolve to anything, now or later. */
export function isLoopback(host: string): boolean {
  return /^(?:localhost|127(?:\.\d{1,3}){3}|::1|(?:0{1,4}:){7}0{0,3}1|::ffff:127(?:\.\d{1,3}){3})$/i.test(host);
}

function hostOf(address: string): string {
  return new URL(address).hostname.replace(/^\[(.*)\]$/, '$1');
}
