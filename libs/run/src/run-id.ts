/**
 * Run ids: UUIDv7 strings whose 12 bits `rand_a` are the hash of the run's key, so that whoever holds an id can route
 * it: the top bits of the hash name the partition. Time and randomness come in as data.
 */
import type { RunId } from './brands.ts';

/** Partitions are a power of two, at most this many; fixed at set-up (P9). */
const PARTITIONS_MAX = 256;

const KEY_HASH_BITS = 12;
const HEX = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, '0'));
const RUN_ID = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

/** Ten random bytes are wanted: eight are used for `rand_b`. */
export function newRunId(options: { readonly now: number; readonly key: string; readonly random: Uint8Array }): RunId {
  const time = Math.floor(options.now).toString(16).padStart(12, '0').slice(-12);
  const randA = keyHash(options.key).toString(16).padStart(3, '0');
  if (options.random.length < 8) throw new RangeError('newRunId needs eight random bytes');
  let tail = '';
  for (let index = 0; index < 8; index++) tail += HEX[options.random[index] ?? 0] ?? '';
  const variant = ((Number.parseInt(tail[0] ?? '0', 16) & 0x3) | 0x8).toString(16);
  return `${time.slice(0, 8)}-${time.slice(8)}-7${randA}-${variant}${tail.slice(1, 4)}-${tail.slice(4)}`;
}

export function isRunId(text: string): boolean {
  return RUN_ID.test(text);
}

/** Milliseconds since 1970, as the id says. */
export function runIdTime(runId: RunId): number {
  return Number.parseInt(runId.slice(0, 8) + runId.slice(9, 13), 16);
}

/** Below the ids of all runs of this time and later, and above those of before. */
export function runIdsBefore(time: number): string {
  const hex = Math.max(0, Math.floor(time)).toString(16).padStart(12, '0').slice(-12);
  return `${hex.slice(0, 8)}-${hex.slice(8)}-`;
}

/** Whether the id's bits are those of the key: an id that a client brings along must fit. */
export function runIdFitsKey(runId: RunId, key: string): boolean {
  return isRunId(runId) && Number.parseInt(runId.slice(15, 18), 16) === keyHash(key);
}

export function partitionOf(runId: RunId, partitions: number): number {
  return Number.parseInt(runId.slice(15, 18), 16) >>> (KEY_HASH_BITS - partitionBits(partitions));
}

export function partitionOfKey(key: string, partitions: number): number {
  return keyHash(key) >>> (KEY_HASH_BITS - partitionBits(partitions));
}

/** Throws a RangeError for a count that is not a power of two from 1 to 256. */
export function partitionBits(partitions: number): number {
  const bits = Math.log2(partitions);
  if (!Number.isInteger(bits) || partitions < 1 || partitions > PARTITIONS_MAX) {
    throw new RangeError(
      `the number of partitions is ${partitions}; it must be a power of two from 1 to ${PARTITIONS_MAX}`,
    );
  }
  return bits;
}

/** The tenant that runs triggered with the API key, or by webhooks of unconnected repositories, belong to. */
export const SERVICE_TENANT = 'service';

/** A user's runs share one key; inside `service`, strangers are kept apart by repository, else by pipeline name. */
export function keyOf(owner: {
  readonly tenant: string;
  readonly repository?: string | undefined;
  readonly pipelineName: string;
}): string {
  // A name may hold half of a surrogate pair, which no store takes: the key is the same wherever it is written.
  return (
    owner.tenant === SERVICE_TENANT ? `${SERVICE_TENANT}/${owner.repository ?? owner.pipelineName}` : owner.tenant
  ).toWellFormed();
}

/** FNV-1a over UTF-16 units, folded to 12 bits. Part of the contract: ids in use carry it. */
function keyHash(key: string): number {
  let hash = 0x811c9dc5;
  for (let index = 0; index < key.length; index++) {
    hash = Math.imul(hash ^ key.charCodeAt(index), 0x01000193);
  }
  hash ^= hash >>> 15;
  hash = Math.imul(hash, 0x2c1b3c6d);
  hash ^= hash >>> 12;
  return (hash >>> (32 - KEY_HASH_BITS)) & 0xfff;
}
