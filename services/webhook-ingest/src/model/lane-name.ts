/**
 * What the processing takes turns between and keeps in order: a repository of one tenant and trust, its pushes and each of its
 * pull requests apart, since the head of one may be waited for. It follows from what
 * identifies a delivery, so that of two writes of one delivery both are about the same subject; a token of that subject.
 */
import { hash } from 'node:crypto';
import type { DeliveryPlace } from '@penstock/bus';
import type { Delivery } from './delivery.ts';

/** What was named lately: the hosts and owners of pushes are few, and their hashes a thirtieth of what taking one in costs. */
const named = new Map<string, string>();
const NAMED_MAX = 1_000;

/** Where a delivery stands, with what it shares places with when it is processed: its host, and its key, which is a user for all that it has connected. */
export function placeOf(delivery: Delivery): DeliveryPlace {
  return { lane: laneOf(delivery), host: nameOf(authorityOf(delivery.cloneUrl), delivery.key) };
}

function nameOf(authority: string, owner: string): string {
  const both = JSON.stringify([authority, owner]);
  let name = named.get(both);
  if (name === undefined) {
    if (named.size >= NAMED_MAX) named.clear();
    name = `${hashOf(authority)}.${hashOf(owner)}`;
    named.set(both, name);
  }
  return name;
}

/** Read from what `placeOf` has named; an earlier release named the host alone. */
export function sharingOf(named: string): { readonly host: string; readonly owner: string } {
  const [host = '', owner = ''] = named.split('.');
  return { host, owner };
}

function laneOf({
  key,
  provider,
  repository,
  pullRequest,
}: Pick<Delivery, 'key' | 'provider' | 'repository' | 'pullRequest'>): string {
  const number = pullRequest === undefined ? [] : [pullRequest.number];
  return hashOf(JSON.stringify([key, provider, repository, ...number]));
}

/** The host with its port; all paths of this machine are one. */
function authorityOf(cloneUrl: string): string {
  const authority = /^[a-z]+:\/\/([^/]*)/iu.exec(cloneUrl)?.[1] ?? /^[^/:]+(?=:)/u.exec(cloneUrl)?.[0] ?? '';
  return authority.slice(authority.lastIndexOf('@') + 1).toLowerCase();
}

/** Enough that nobody finds two names of one hash. */
function hashOf(text: string): string {
  return hash('sha256', text, 'base64url').slice(0, 24);
}
