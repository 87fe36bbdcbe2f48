/** What a variable is declared by. */
import type { Kind } from '../kinds.ts';

type ServiceName = 'serve' | 'gateway' | 'scheduler' | 'runner' | 'auth' | 'registry' | 'webhook-ingest' | 'scaler';

export interface Variable<T, D extends T | undefined = T | undefined> {
  readonly name: string;
  readonly kind: Kind<T>;
  /** Undefined: none; then the reader gives undefined. */
  readonly default: D;
  /** Where the default is not one value: what the table says in its place. */
  readonly defaultText?: string;
  readonly meaning: string;
  readonly services: readonly ServiceName[];
  /** Its value is never shown, in problems neither. */
  readonly secret?: true;
  /** A start in production mode without it is refused; how to get a value. */
  readonly requiredInProduction?: string;
}

export const SECOND_MS = 1000;
export const MINUTE_MS = 60 * SECOND_MS;
export const DAY_MS = 24 * 60 * MINUTE_MS;

export const ownProcesses: readonly ServiceName[] = [
  'gateway',
  'scheduler',
  'runner',
  'auth',
  'registry',
  'webhook-ingest',
];
export const allServices: readonly ServiceName[] = ['serve', ...ownProcesses];
export const withScaler = (services: readonly ServiceName[]): readonly ServiceName[] => [...services, 'scaler'];

export function variable<T>(
  declared: Omit<Variable<T, T>, 'default'> & { readonly default: NoInfer<T> },
): Variable<T, T> {
  return declared;
}

export function optional<T>(
  declared: Omit<Variable<T, undefined>, 'default'> & { readonly defaultText: string },
): Variable<T, undefined> {
  return { ...declared, default: undefined };
}
