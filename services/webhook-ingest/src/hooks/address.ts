/**
 * Where a hook may send to, judged by the text of its address. What a name resolves to is judged when it is sent (`resolve.ts`).
 *
 * In production mode that is the public internet by its usual ports: this server stands where its users do not, and must not knock
 * at doors for them. In development mode it is anything.
 */
import { isIP } from 'node:net';
import type { ServerMode } from '@penstock/config';
import { classOfAddress } from '@penstock/git';

/** Why the address is refused, as a sentence for a person. */
export type Refusal = { readonly refusal: string };

const CHARACTERS_MAX = 2_048;
/** In a URL's text these mean different things to different readers. */
const PLAIN_TEXT = /^[!-[\]-~]+$/u;
/** Names that mean this machine, or its own network, to whoever resolves them. */
const OWN_NAME = /(?:^|\.)(?:localhost|local|internal|localdomain|home\.arpa)$/u;

export function parseHookUrl(text: string, mode: ServerMode): URL | Refusal {
  if (text === '' || text.length > CHARACTERS_MAX)
    return { refusal: `an address has 1 to ${CHARACTERS_MAX} characters` };
  if (!PLAIN_TEXT.test(text) || !URL.canParse(text)) return { refusal: 'this is no address: write https://host/path' };
  const url = new URL(text);
  if (url.protocol !== 'https:' && url.protocol !== 'http:')
    return { refusal: 'an address begins with https:// or http://' };
  if (url.username !== '' || url.password !== '')
    return { refusal: 'an address holds no user and no password; what is sent is signed' };
  if (url.hash !== '') return { refusal: 'what stands behind # is never sent: leave it out' };
  if (mode === 'development') return url;
  // The usual port of the scheme is '' here.
  if (url.port !== '' && url.port !== '80' && url.port !== '443')
    return { refusal: 'only the ports 80 and 443 are allowed here' };
  const host = hostOf(url);
  if (isIP(host) !== 0) return classOfAddress(host) === 'public' ? url : { refusal: 'the address is not a public one' };
  const name = host.replace(/\.$/u, '');
  return !name.includes('.') || OWN_NAME.test(name) ? { refusal: `the name '${host}' is not a public one` } : url;
}

/** A name, or an address without brackets. */
export function hostOf({ hostname }: URL): string {
  return hostname.startsWith('[') ? hostname.slice(1, -1) : hostname;
}
