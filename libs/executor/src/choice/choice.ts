/**
 * Which of several executors runs a stage: the first that gives what the stage asks for, and at least the isolation that its
 * run's trust demands. Whoever has executors asks here, so that all mean the same by a file.
 */
import type { ExecutorKind, StagePlace } from '../contract/port.ts';

/** How far a stage is kept from its machine: as a process, in a sandbox, in a container. */
export type IsolationLevel = 'none' | 'sandbox' | 'container';

export interface StageNeeds {
  readonly place?: StagePlace | undefined;
  readonly isolation: IsolationLevel;
}

const LEVELS: readonly IsolationLevel[] = ['none', 'sandbox', 'container'];

interface Gift {
  readonly level: IsolationLevel;
  readonly images: boolean;
  /** `network: none`, and the addresses that an untrusted stage is not to reach. */
  readonly network: boolean;
  readonly limits: boolean;
}

const GIFTS: Readonly<Record<ExecutorKind, Gift>> = {
  process: { level: 'none', images: false, network: false, limits: false },
  sandbox: { level: 'sandbox', images: false, network: true, limits: true },
  container: { level: 'container', images: true, network: true, limits: true },
  kubernetes: { level: 'container', images: true, network: true, limits: true },
};

/**
 * `executors`: in the order of preference. Limits (`resources`) are wished for: a stage that no executor can hold to them runs
 * without, and its log is to say so (`limitsRemark`). Undefined: no executor gives what the stage asks for.
 */
export function chooseExecutor<E extends { readonly kind: ExecutorKind }>(
  executors: readonly E[],
  needs: StageNeeds,
): E | undefined {
  const fitting = executors.filter(({ kind }) => fits(GIFTS[kind], needs));
  const limiting = needs.place?.resources === undefined ? [] : fitting.filter(({ kind }) => GIFTS[kind].limits);
  return limiting[0] ?? fitting[0];
}

/**
 * A line for the log of a stage whose limits its executor may not hold it to. `isBounded`: its runner bounds plain processes too,
 * their memory always, by control groups or by watching, and their processors where it has control groups.
 */
export function limitsRemark(
  kind: ExecutorKind,
  place: StagePlace | undefined,
  isBounded: boolean,
): string | undefined {
  if (place?.resources === undefined || GIFTS[kind].limits) return undefined;
  if (!isBounded) return 'resources: this stage runs as a plain process, which is held to no limits';
  return place.resources.cpu === undefined
    ? undefined
    : 'resources: this stage runs as a plain process, which is held to its processors only where the runner has control groups';
}

function fits({ level, images, network }: Gift, { place, isolation }: StageNeeds): boolean {
  const asksForImages = place?.image !== undefined || (place?.services?.length ?? 0) > 0;
  return (
    LEVELS.indexOf(level) >= LEVELS.indexOf(isolation) &&
    (images || !asksForImages) &&
    (network || place?.network === undefined || place.network === 'open')
  );
}
