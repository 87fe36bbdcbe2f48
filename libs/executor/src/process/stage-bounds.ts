/**
 * The bounds of one stage while it runs: its control group is set to what it asks for, what the kernel does not bound is watched,
 * and in the end it is told what it met.
 */
import { dirname } from 'node:path';
import type { StageExit, StageSpec } from '../contract/port.ts';
import type { GroupCounts } from '../limits/control-groups.ts';
import type { StageLimits } from '../limits/stage-limits.ts';
import { UsageWatch } from '../limits/usage-watch.ts';
import type { Helper } from './helper.ts';
import type { OomCounter } from './oom.ts';

const KILLED: Extract<StageExit, { kind: 'signal' }> = { kind: 'signal', signal: 'SIGKILL', code: 137, oom: false };

/** Of a stage, whatever of the two is less. */
export function memoryOf({ place }: Pick<StageSpec, 'place'>, limits: StageLimits | undefined): number {
  return Math.min(limits?.memoryBytes ?? Infinity, place?.resources?.memoryBytes ?? Infinity);
}

export class StageBounds {
  /** For the stage's log: whole lines without their ends. */
  readonly remarks: string[] = [];
  readonly #helper: Helper;
  readonly #oom: OomCounter;
  readonly #limits: StageLimits | undefined;
  readonly #memoryBytes: number;
  readonly #countsBefore: GroupCounts | null;
  readonly #oomKillsBefore: number | null;
  readonly #watch: UsageWatch | null;

  constructor(
    helper: Helper,
    spec: StageSpec,
    { oom, limits }: { readonly oom: OomCounter; readonly limits: StageLimits | undefined },
  ) {
    this.#helper = helper;
    this.#oom = oom;
    this.#limits = limits;
    const { group } = helper;
    const { place, run, cwd } = spec;
    const asked = place?.resources;
    this.#memoryBytes = memoryOf(spec, limits);
    if (group !== null && helper.memoryBytes !== this.#memoryBytes) {
      group.setMemory(this.#memoryBytes);
      helper.memoryBytes = this.#memoryBytes;
    }
    if (helper.cores !== asked?.cpu) {
      group?.setCpu(asked?.cpu);
      helper.cores = asked?.cpu;
    }
    this.#countsBefore = helper.counts ?? group?.counts() ?? null;
    this.#oomKillsBefore = group === null ? oom.read() : null;
    this.#watch =
      limits === undefined
        ? null
        : new UsageWatch({
            folders: run === undefined ? [cwd] : [run.folder, run.temporary],
            disks: run === undefined ? undefined : [...new Set([dirname(run.folder), dirname(run.temporary)])],
            helperPid: group === null ? helper.identities.at(-1)?.pid : undefined,
            limits: { ...limits, memoryBytes: this.#memoryBytes },
            onExceeded: (what, remark) => {
              this.remarks.push(remark);
              helper.endStage({ ...KILLED, oom: what === 'memory' });
            },
          });
  }

  close(): void {
    this.#watch?.close();
  }

  /** Once, of a stage that has ended. */
  judge(exit: StageExit): StageExit {
    this.close();
    const { group } = this.#helper;
    const wasKilled = exit.kind === 'signal' && exit.signal === 'SIGKILL';
    if (group === null || this.#countsBefore === null)
      return wasKilled && !exit.oom ? { ...exit, oom: this.#oom.read() !== this.#oomKillsBefore } : exit;
    const now = group.counts();
    this.#helper.counts = now;
    const oomKills = now.oomKills - this.#countsBefore.oomKills;
    const refused = now.refused - this.#countsBefore.refused;
    if (oomKills > 0)
      this.remarks.push(
        `the stage ran out of memory: it may take ${this.#memoryBytes} bytes, and ${oomKills} of its processes were killed`,
      );
    if (refused > 0)
      this.remarks.push(
        `the stage could not start a process, ${refused} times: it may have ${this.#limits?.processes} at a time`,
      );
    return wasKilled ? { ...exit, oom: exit.oom || oomKills > 0 } : exit;
  }
}
