/** What a decision asks for, carried out: at once where it stays in memory, behind the decision's commit where it goes out (PARTITION-1). */
import type { RunEffect } from '@penstock/run';
import type { JobDeliveries } from '../dispatch/job-deliveries.ts';
import type { LiveRun } from '../run/live-run.ts';

export interface EffectsHost {
  readonly jobs: Pick<JobDeliveries, 'grant' | 'stop'>;
  offer(run: LiveRun, stages: readonly string[]): void;
  wakeAt(run: LiveRun, at: number): void;
  /** It gives its place back. */
  rested(run: LiveRun): void;
  /** It is to have one again. */
  wantsPlace(run: LiveRun): void;
  settled(run: LiveRun): void;
  /** Called once the decision is stored; what throws then costs the run. */
  afterwards(run: LiveRun, act: () => void): void;
}

export function carryOut(run: LiveRun, effects: readonly RunEffect[], host: EffectsHost): void {
  for (const effect of effects) {
    switch (effect.type) {
      case 'offer-stages':
        host.offer(run, effect.stages);
        break;
      case 'wake-at':
        host.wakeAt(run, effect.at);
        break;
      case 'send-grant':
        host.afterwards(run, () => host.jobs.grant(run, effect.stage, effect.attempt));
        break;
      case 'stop-attempt':
        host.afterwards(run, () => host.jobs.stop(run, effect.stage, effect.attempt));
        break;
      case 'rest':
        host.rested(run);
        break;
      case 'want-place':
        host.wantsPlace(run);
        break;
      case 'settle':
        // Those that waited for it are admitted in the same commit.
        host.settled(run);
        break;
    }
  }
}
