/** Decisions that can be taken once, whoever asks and in however many processes: each is the insert of a document. */
import type { Collection, DocumentStore } from '@penstock/store';
import { oneTimeClaimsSpec, type OneTimeClaimRow } from './collections.ts';

export interface OneTimeClaim {
  readonly value?: string | undefined;
  readonly userId?: string | undefined;
  readonly at: number;
  readonly expiresAt: number;
}

export class OneTimeClaims {
  readonly #rows: Collection<typeof oneTimeClaimsSpec>;

  constructor(store: DocumentStore) {
    this.#rows = store.collection(oneTimeClaimsSpec);
  }

  /** True for the one caller that took it. */
  async take(id: string, claim: OneTimeClaim): Promise<boolean> {
    return (
      (await this.#rows.insert({
        id,
        value: claim.value ?? '',
        userId: claim.userId ?? '',
        at: claim.at,
        expiresAt: claim.expiresAt,
      })) === 'inserted'
    );
  }

  async get(id: string): Promise<OneTimeClaimRow | null> {
    return await this.#rows.get(id);
  }
}
