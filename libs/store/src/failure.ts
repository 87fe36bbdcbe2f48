/** What went wrong inside an adapter, as a value that crosses threads and attempts, and the port's error for it. */
import { StoreCorrupt, type StoreError, StoreIncompatible, StoreUnavailable, StoreUsageError } from './errors.ts';

export interface Failure {
  readonly tag: 'unavailable' | 'corrupt' | 'incompatible' | 'usage';
  readonly problem: string;
  readonly cause?: unknown;
}

export function errorOf(store: string, failure: Failure): StoreError {
  switch (failure.tag) {
    case 'unavailable':
      return new StoreUnavailable(store, failure.problem, failure.cause);
    case 'corrupt':
      return new StoreCorrupt(store, failure.problem, failure.cause);
    case 'incompatible':
      return new StoreIncompatible(store, failure.problem, failure.cause);
    case 'usage':
      return new StoreUsageError(store, failure.problem);
  }
}
