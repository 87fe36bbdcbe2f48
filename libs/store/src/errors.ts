/** What can go wrong with a store, by what the caller can do about it. */
import { TaggedError } from '@penstock/errors';

export abstract class StoreError extends TaggedError {
  readonly retryable: boolean;
  /** Which store: a file's path, or an address without its credentials. */
  readonly store: string;

  constructor(store: string, message: string, options: { readonly retryable: boolean; readonly cause?: unknown }) {
    super(message, 'cause' in options ? { cause: options.cause } : {});
    this.store = store;
    this.retryable = options.retryable;
  }
}

/** No answer in time, locked, full, away, or closed. A write may have taken place; it is safe to repeat. */
export class StoreUnavailable extends StoreError {
  readonly tag = 'StoreUnavailable';

  constructor(store: string, problem: string, cause?: unknown) {
    super(store, `the store ${store} is unavailable: ${problem}`, { retryable: true, cause });
  }
}

/** What is stored cannot be read. Nothing of it is changed; a person has to restore or remove it. */
export class StoreCorrupt extends StoreError {
  readonly tag = 'StoreCorrupt';

  constructor(store: string, problem: string, cause?: unknown) {
    super(store, `the store ${store} is damaged: ${problem}`, { retryable: false, cause });
  }
}

/** Written by a newer release, or with other field types than this build declares. */
export class StoreIncompatible extends StoreError {
  readonly tag = 'StoreIncompatible';

  constructor(store: string, problem: string, cause?: unknown) {
    super(store, `the store ${store} does not fit this release: ${problem}`, { retryable: false, cause });
  }
}

/** The call breaks the port's contract: a query that no index serves, a missing field, a batch too large. */
export class StoreUsageError extends StoreError {
  readonly tag = 'StoreUsageError';

  constructor(store: string, problem: string) {
    super(store, problem, { retryable: false });
  }
}

/** Whether what is stored cannot be read, and will not by reading it again. */
export function isDamage(error: unknown): error is StoreCorrupt | SyntaxError {
  return error instanceof StoreCorrupt || error instanceof SyntaxError;
}
