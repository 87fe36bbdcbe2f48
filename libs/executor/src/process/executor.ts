/** The process executor: stages as processes of this machine, each alone in a PID and mount namespace where those are to be had. */
import { UnstartableStage } from '../contract/errors.ts';
import type { StageSpec } from '../contract/port.ts';
import { HelperExecutor, type HelperExecutorOptions } from './helper-executor.ts';
import { isolationsToTry, launchPlain, type CoveredFolder, type Isolation } from './launch.ts';

export interface ProcessExecutorOptions extends HelperExecutorOptions {
  /** Looks empty to stages: the owner's data. Of `keep` in it, the workspaces, a stage sees its run's. */
  readonly covered?: CoveredFolder | undefined;
  /** Whether stages have users of their own where `canChangeUser`: their helpers have less rights, and change it faster. */
  readonly hasUsers?: boolean | undefined;
  /** Whether stages are their owner's own, and may do all that their helpers may: in a user namespace each then starts in a third of the time. */
  readonly sharesRights?: boolean | undefined;
  /** Whether the process of a helper's next stage is there before its order is: sooner where processors idle between stages, slower where not. */
  readonly forksAhead?: boolean | undefined;
  /** For tests: the ways to isolate that are tried, in order. */
  readonly isolations?: readonly Isolation[] | undefined;
}

export class ProcessExecutor extends HelperExecutor {
  readonly kind = 'process';

  constructor(options: ProcessExecutorOptions = {}) {
    const { covered, hasUsers, sharesRights, forksAhead, isolations = isolationsToTry() } = options;
    super(options, {
      ways: ({ pipesFolder: pipes }, limits) =>
        isolations.map((isolation) => ({
          isolation,
          launch: () => launchPlain(isolation, { covered, pipes, limits, hasUsers, sharesRights, forksAhead }),
        })),
      placeOf,
      hidesScratch: covered?.keep !== undefined,
    });
  }

  get canChangeUser(): boolean {
    return this.isolation === 'namespace';
  }
}

function placeOf({ place }: StageSpec): string {
  if (place?.image !== undefined || (place?.services?.length ?? 0) > 0)
    throw new UnstartableStage('it asks for an image or services, which a plain process does not have');
  if (place?.network !== undefined && place.network !== 'open')
    throw new UnstartableStage('a plain process has the network of its machine, and the stage is not to');
  return '';
}
