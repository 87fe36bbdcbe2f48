/** Which executors this machine can have, in the order in which they are preferred. */
import type { ExecutorKind, IsolationLevel } from '@penstock/executor';
import { ExecutorMissing } from './errors.ts';
import { findContainerSource } from './container-source.ts';
import type { ExecutorSource } from './executor-source.ts';
import { processSource } from './process-source.ts';

export interface ExecutorSettings {
  /** `SERVICE_EXECUTORS`; absent: what is found. */
  readonly wanted?: readonly ExecutorKind[] | undefined;
  /** In production mode a stage runs in a sandbox where there is one, whoever's it is. */
  readonly mode: 'development' | 'production';
}

/** Looks for one kind; null where this machine has it not. */
type Finder = (settings: ExecutorSettings) => Promise<ExecutorSource | null>;

/** Each kind has its place here: what looks for it. */
const FINDERS: Readonly<Partial<Record<ExecutorKind, Finder>>> = {
  process: () => Promise.resolve(processSource),
  container: findContainerSource,
};

const PREFERENCE: Readonly<Record<ExecutorSettings['mode'], readonly ExecutorKind[]>> = {
  development: ['process', 'sandbox', 'container', 'kubernetes'],
  production: ['sandbox', 'process', 'container', 'kubernetes'],
};

/** Throws ExecutorMissing where one that was asked for by name is not to be had. */
export async function findExecutors(settings: ExecutorSettings): Promise<readonly ExecutorSource[]> {
  const { wanted } = settings;
  const kinds = wanted ?? PREFERENCE[settings.mode];
  const found = await Promise.all(kinds.map((kind) => FINDERS[kind]?.(settings) ?? null));
  const missing = kinds.filter((_kind, index) => found[index] === null);
  if (wanted !== undefined && missing.length > 0) throw new ExecutorMissing(missing);
  return found.filter((source) => source !== null);
}

/** Of a stage whose run is not trusted; `given`: `SERVICE_UNTRUSTED_ISOLATION`. */
export function leastIsolation(
  given: IsolationLevel | undefined,
  found: readonly ExecutorSource[],
  mode: ExecutorSettings['mode'],
): IsolationLevel {
  if (given !== undefined) return given;
  return mode === 'production' && found.some(({ kind }) => kind !== 'process') ? 'sandbox' : 'none';
}
