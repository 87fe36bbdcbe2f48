/** Development or production: decided by where the server listens, and by SERVICE_MODE. */
import type { ListenAddress } from './kinds.ts';

export type ServerMode = 'development' | 'production';

/**
 * Development where the address is loopback and nobody says otherwise. Null: development was asked for on an address
 * that others can reach, which would hand them a server with generated secrets; the start is to be refused.
 */
export function serverMode(options: {
  readonly listen: ListenAddress;
  readonly mode?: ServerMode | undefined;
}): ServerMode | null {
  if (options.mode === 'production') return 'production';
  if (isLoopback(options.listen.host)) return 'development';
  return options.mode === 'development' ? null : 'production';
}

/** Names other than `localhost` may resolve to anything, now or later. */
export function isLoopback(host: string): boolean {
  return /^(?:localhost|127(?:\.\d{1,3}){3}|::1|(?:0{1,4}:){7}0{0,3}1|::ffff:127(?:\.\d{1,3}){3})$/i.test(host);
}
