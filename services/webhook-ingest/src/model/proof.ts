/**
 * What proves that a connected repository is its user's: a ref that only who may write to it can make. A fork's refs are none
 * of the repository's, so somebody who may only propose changes cannot make it.
 *
 * PROOF-1 A proof holds for the host on which the ref was found: a repository of the same path on another host is another one.
 * PROOF-2 In development mode every connection is proved: everybody who reaches the server is trusted anyway.
 */
import { createHmac } from 'node:crypto';
import { hostOfClone } from '@penstock/bus';
import type { ProviderName } from '../providers/provider.ts';
import type { ClonePolicy } from './ports.ts';

/** Where each provider's repositories are, whose commit statuses the API of the provider takes. */
export type HomeHosts = Readonly<Record<ProviderName, string>>;

const TOKEN_CHARACTERS = 32;
/** Each is a question to a git server; an operator who allows more hosts has them asked in the order of the list. */
const HOSTS_MAX = 5;

/** Each connection has its own, and a repository that is connected again gets another one. */
export function proofRefOf(connection: { readonly id: string; readonly createdAt: number }, key: Buffer): string {
  const token = createHmac('sha256', key).update(`proof ${connection.id} ${connection.createdAt}`).digest('hex');
  return `refs/heads/penstock-proof-${token.slice(0, TOKEN_CHARACTERS)}`;
}

/** Where the ref is looked for: the provider's own host first, never the other provider's. */
export function hostsToAsk(provider: ProviderName, { allowedHosts }: ClonePolicy, homes: HomeHosts): readonly string[] {
  const home = homes[provider];
  const foreign = Object.values(homes).filter((host) => host !== home);
  const allowed = [...new Set(allowedHosts.map((host) => host.toLowerCase()))].filter(
    (host) => !foreign.includes(host),
  );
  return [...allowed.filter((host) => host === home), ...allowed.filter((host) => host !== home)].slice(0, HOSTS_MAX);
}

/** Where a connection that has a secret of its own is looked for: it is shown to one host, and not to each that may be cloned from. */
export function placeToShow<Place>(places: readonly Place[]): readonly Place[] {
  return places.slice(0, 1);
}

/** Keeps PROOF-1 and PROOF-2. `cloneUrl` is an address that was built or checked here. */
export function isProvedFor(provedHost: string | null, cloneUrl: string, { mode }: ClonePolicy): boolean {
  return mode === 'development' || (provedHost !== null && provedHost === hostOfClone(cloneUrl));
}
