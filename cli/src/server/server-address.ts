/** Which server a command talks to: SERVICE_BASE_URL is a server's own address and says nothing here. */
import { isIPv4 } from 'node:net';
import { UsageError } from '../process/errors.ts';
import { printableText } from '../output/printable-text.ts';

const DEFAULT_SERVER = 'http://127.0.0.1:8080';

export interface ServerAddress {
  /** Without a slash at its end; a path of a proxy in front stays. */
  readonly base: string;
  /** The server is on this machine: its data folder may lie here, and nothing leaves the machine. */
  readonly isLoopback: boolean;
  readonly isEncrypted: boolean;
}

export function serverAddress(
  given: string | undefined,
  env: Readonly<Record<string, string | undefined>>,
): ServerAddress {
  const text = given ?? (env['SERVICE_URL'] || DEFAULT_SERVER);
  const where = given === undefined ? 'SERVICE_URL' : '--server';
  const url = parseUrl(/^[a-z][a-z0-9+.-]*:\/\//i.test(text) ? text : `http://${text}`);
  if (url === undefined || (url.protocol !== 'http:' && url.protocol !== 'https:')) {
    throw new UsageError(
      `${where} is not an http address: '${printableText(text)}'; write it like https://ci.example.org`,
    );
  }
  if (url.username !== '' || url.password !== '')
    throw new UsageError(`${where} must not hold a password: put the token into a file and name it with --token-file`);
  return {
    base: `${url.origin}${url.pathname.replace(/\/+$/, '')}`,
    isLoopback: isLoopback(url.hostname),
    isEncrypted: url.protocol === 'https:',
  };
}

function parseUrl(text: string): URL | undefined {
  return URL.canParse(text) ? new URL(text) : undefined;
}

function isLoopback(hostname: string): boolean {
  return hostname === 'localhost' || hostname === '[::1]' || (isIPv4(hostname) && hostname.startsWith('127.'));
}
