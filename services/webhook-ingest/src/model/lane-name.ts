/**
 * What the processing takes turns between and keeps in order: a repository of one tenant and trust; its pull requests apart, since the
 * head of one may be waited for, and in a bounded number of lanes a key, for whoever has a secret numbers them as they like. It follows from what
 * identifies a delivery, so that of two writes of one delivery both are about the same subject; a token of that subject.
 */
import { hash } from 'node:crypto';
import type { DeliveryPlace } from '@penstock/bus';
import type { Delivery } from './delivery.ts';

/** What was named lately: the hosts and owners of pushes are few, and their hashes a thirtieth of what taking one in costs. */
const names = new Map<string, string>();
const NAMES_MAX = 1_000;
/** Of a key. Each lane has a head that is held, of which an ingest holds some thousands. */
const PULL_REQUEST_LANES = 256;
/** Strangers name hosts. */
const NAMED_LENGTH_MAX = 300;

/** Where a delivery stands, with what it shares places with when it is processed: its host, and its user where it is of a connected repository. */
export function placeOf(delivery: Delivery): DeliveryPlace {
  const { cloneUrl, verified, key } = delivery;
  return { lane: laneOf(delivery), host: nameOf(authorityOf(cloneUrl), verified === 'connection' ? key : '') };
}

function nameOf(authority: string, owner: string): string {
  const both = JSON.stringify([authority, owner]);
  const known = names.get(both);
  if (known !== undefined) return known;
  const name = owner === '' ? hashOf(authority) : `${hashOf(authority)}.${hashOf(owner)}`;
  if (both.length > NAMED_LENGTH_MAX) return name;
  if (names.size >= NAMES_MAX) names.clear();
  names.set(both, name);
  return name;
}

/** Read from what `placeOf` has named; an earlier release named the host alone. */
export function sharingOf(name: string): { readonly host: string; readonly owner: string } {
  const [host = '', owner = ''] = name.split('.');
  return { host, owner };
}

function laneOf({
  key,
  provider,
  repository,
  pullRequest,
}: Pick<Delivery, 'key' | 'provider' | 'repository' | 'pullRequest'>): string {
  if (pullRequest === undefined) return hashOf(JSON.stringify([key, provider, repository]));
  const one = hash('sha256', JSON.stringify([provider, repository, pullRequest.number]), 'buffer');
  return hashOf(JSON.stringify([key, 'pull requests', one.readUInt32BE() % PULL_REQUEST_LANES]));
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
