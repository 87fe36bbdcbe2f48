/** How far secrets have moved to the first master key, and which of the others may be taken away. */
import type { MasterKeysView, MasterKeyView } from '@penstock/identity';
import type { Collection, DocumentStore } from '@penstock/store';
import { signingKeysSpec, stageSecretsSpec } from '../model/collections.ts';
import type { KeyHolders } from '../model/key-holders.ts';
import type { MasterKeys } from '../model/master-keys.ts';

export interface KeyRotationOptions {
  readonly store: DocumentStore;
  readonly keys: MasterKeys;
  readonly holders: Pick<KeyHolders, 'living'>;
}

/** Of both collections, each. Beyond it the figures say at least so many. */
const COUNTED_MAX = 10_000;
const BATCH = 1_000;

/** What is kept under the first key is not counted: it may be everything. Throws what the store throws. */
export async function masterKeysView({ store, keys, holders }: KeyRotationOptions): Promise<MasterKeysView> {
  // Before the counting: what a process that has just ended has sealed is counted, and one that begins later is not yet asked about.
  const living = await holders.living();
  const { currentId } = keys;
  const sealed = new Map<string, number>();
  if (currentId !== undefined)
    for (const where of [{ lt: currentId }, { gt: currentId }]) {
      await count(store.collection(stageSecretsSpec), where, sealed);
      // What is looked at of a row is alike in both.
      await count(store.collection(signingKeysSpec) as unknown as Collection<typeof stageSecretsSpec>, where, sealed);
    }
  const agree = living.every(({ first }) => first === (currentId ?? ''));
  const known = new Set([...keys.ids, ...living.flatMap((holder) => holder.keys)]);
  return {
    processes: living.length,
    agree,
    keys: [...known, ...[...sealed.keys()].filter((id) => !known.has(id))].map((id): MasterKeyView => {
      const left = sealed.get(id) ?? 0;
      const state = id === currentId ? 'FIRST' : known.has(id) ? 'OTHER' : 'MISSING';
      const usedBy = living.filter(({ first }) => first === id).length;
      return { id, state, sealed: left, usedBy, mayGo: state === 'OTHER' && agree && left === 0 };
    }),
  };
}

async function count(
  rows: Collection<typeof stageSecretsSpec>,
  where: { readonly gt: string } | { readonly lt: string },
  into: Map<string, number>,
): Promise<void> {
  let after: { readonly id: string; readonly value: string } | undefined;
  for (let counted = 0; counted < COUNTED_MAX; counted += BATCH) {
    const batch = await rows.list({
      where: { keyId: where },
      orderBy: { field: 'keyId', direction: 'asc' },
      limit: BATCH,
      parts: [],
      after,
    });
    for (const { keyId } of batch) into.set(keyId, (into.get(keyId) ?? 0) + 1);
    const last = batch.at(-1);
    if (last === undefined || batch.length < BATCH) return;
    after = { id: last.id, value: last.keyId };
  }
}
