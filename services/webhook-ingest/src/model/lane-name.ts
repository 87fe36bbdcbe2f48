/**
 * What the processing takes turns between and keeps in order: a repository of one tenant and trust, its pushes and each of its
 * pull requests apart, since the head of one may be waited for. It follows from what
 * identifies a delivery, so that of two writes of one delivery both are about the same subject; a token of that subject.
 */
import { hash } from 'node:crypto';
import type { DeliveryPlace } from '@penstock/bus';
import type { Delivery } from './delivery.ts';

/** Where a delivery stands, with what it shares places with when it is processed: see `sharingOf`. */
export function placeOf(delivery: Delivery): DeliveryPlace {
  return { lane: laneOf(delivery), host: `${hostOf(delivery.cloneUrl)}.${hashOf(ownerOf(delivery))}` };
}

/** Read from what `placeOf` has named; an earlier release named the host alone. */
export function sharingOf(named: string): { readonly host: string; readonly owner: string } {
  const [host = '', owner = ''] = named.split('.');
  return { host, owner };
}

/** A user for all that it has connected, and all strangers together: they name as many repositories and hosts as they like. */
function ownerOf({ verified, key }: Delivery): string {
  return verified === 'none' ? 'nobody' : `key ${key}`;
}

export function laneOf({
  key,
  provider,
  repository,
  pullRequest,
}: Pick<Delivery, 'key' | 'provider' | 'repository' | 'pullRequest'>): string {
  const number = pullRequest === undefined ? [] : [pullRequest.number];
  return hashOf(JSON.stringify([key, provider, repository, ...number]));
}

/** The host with its port, as its hash; all paths of this machine are one. */
export function hostOf(cloneUrl: string): string {
  const authority = /^[a-z]+:\/\/([^/]*)/iu.exec(cloneUrl)?.[1] ?? /^[^/:]+(?=:)/u.exec(cloneUrl)?.[0] ?? '';
  return hashOf(authority.slice(authority.lastIndexOf('@') + 1).toLowerCase());
}

/** Enough that nobody finds two names of one hash. */
function hashOf(text: string): string {
  return hash('sha256', text, 'base64url').slice(0, 24);
}
