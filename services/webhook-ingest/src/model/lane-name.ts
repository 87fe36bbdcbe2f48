/**
 * What the processing takes turns between, by name: the repository's key and the host that is waited for, each as its hash,
 * since the name travels in a message's header.
 */
import { createHash } from 'node:crypto';
import type { Delivery } from './delivery.ts';

/** This character is in no hash. */
const MARK = '.';

export function laneOf({ key, cloneUrl }: Pick<Delivery, 'key' | 'cloneUrl'>): string {
  return `${hashOf(key)}${MARK}${hashOf(hostIn(cloneUrl))}`;
}

/** What lanes of one host have in common. */
export function hostOfLane(lane: string): string {
  return lane.slice(lane.indexOf(MARK) + 1);
}

/** Answers the host with its port; '' for all paths of this machine. */
function hostIn(cloneUrl: string): string {
  const authority = /^[a-z]+:\/\/([^/]*)/iu.exec(cloneUrl)?.[1] ?? /^[^/:]+(?=:)/u.exec(cloneUrl)?.[0] ?? '';
  return authority.slice(authority.lastIndexOf('@') + 1).toLowerCase();
}

function hashOf(text: string): string {
  return createHash('sha256').update(text).digest('base64url').slice(0, 16);
}
