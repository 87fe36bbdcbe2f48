/** Which executors this machine can have, in the order in which they are preferred. */
import { type ExecutorKind, type IsolationLevel, whySandboxLacks } from '@penstock/executor';
import { ExecutorMissing } from './errors.ts';
import { findContainerSource } from './container-source.ts';
import type { ExecutorSource, UidRange } from './executor-source.ts';
import { findKubernetes, type KubernetesSettings } from './kubernetes-source.ts';
import { processSource } from './process-source.ts';
import { sandboxSource } from './sandbox-source.ts';

export interface ExecutorSettings {
  /** `SERVICE_EXECUTORS`; absent: what is found. */
  readonly wanted?: readonly ExecutorKind[] | undefined;
  /** In production mode a stage runs in a sandbox where there is one, whoever's it is. */
  readonly mode: 'development' | 'production';
  /** Where the runner is root: whom stages run as. */
  readonly stageUids?: UidRange | undefined;
  /** Told what the machine lacks for a kind that it was not asked for by name. */
  readonly onLacking?: ((kind: ExecutorKind, why: string) => void) | undefined;
  /** Absent: there is no cluster. */
  readonly kubernetes?: KubernetesSettings | undefined;
}

/** Looks for one kind; null, or what it lacks, where this machine has it not. */
type Finder = (settings: ExecutorSettings) => Promise<ExecutorSource | string | null>;

/** Each kind has its place here: what looks for it. */
const FINDERS: Readonly<Partial<Record<ExecutorKind, Finder>>> = {
  process: () => Promise.resolve(processSource),
  sandbox: async ({ stageUids }) => (await whySandboxLacks(stageUids)) ?? sandboxSource,
  container: findContainerSource,
  kubernetes: ({ kubernetes, wanted }) => findKubernetes(kubernetes, wanted?.includes('kubernetes') === true),
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
  const sources: ExecutorSource[] = [];
  const missing: string[] = [];
  for (const [index, kind] of kinds.entries()) {
    const source = found[index] ?? null;
    if (source !== null && typeof source !== 'string') sources.push(source);
    else missing.push(source === null ? kind : `${kind} (${source})`);
    if (typeof source === 'string') settings.onLacking?.(kind, source);
  }
  if (wanted !== undefined && missing.length > 0) throw new ExecutorMissing(missing);
  return sources;
}

/**
 * Of a stage whose run is not trusted; `given`: `SERVICE_UNTRUSTED_ISOLATION`. Where a runner has nothing of the kind, it does not
 * take such stages.
 */
export function leastIsolation(given: IsolationLevel | undefined, mode: ExecutorSettings['mode']): IsolationLevel {
  return given ?? (mode === 'production' ? 'sandbox' : 'none');
}
