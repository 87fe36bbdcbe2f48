/**
 * The sandbox: stages as processes of this machine that see its programs, their run's folders and nothing else of it. Started
 * by the same helpers as plain processes, through bubblewrap.
 */
import { UnstartableStage } from '../contract/errors.ts';
import type { StageSpec } from '../contract/port.ts';
import type { ShellLimits } from '../limits/stage-limits.ts';
import { HelperExecutor, type HelperExecutorOptions } from '../process/helper-executor.ts';
import type { Launch } from '../process/launch.ts';
import type { Scratch } from '../process/scratch.ts';
import { launchSandbox, type SandboxLayout, type SandboxParts } from './launch.ts';
import { addressesOf, networkRules, RESOLVER_FILE } from '../network/rules.ts';
import { sandboxFilter } from './seccomp.ts';

export interface SandboxExecutorOptions extends HelperExecutorOptions {
  readonly layout: SandboxLayout;
  /** Names and addresses of machines that no stage is to reach: the broker's and the store's. */
  readonly deniedHosts?: readonly string[] | undefined;
}

export class SandboxExecutor extends HelperExecutor {
  readonly kind = 'sandbox';
  readonly #hasUsers: boolean;

  constructor(options: SandboxExecutorOptions) {
    super(options, {
      ways: (scratch, limits) => [{ isolation: 'sandbox', launch: launcher(options, scratch, limits) }],
      placeOf,
      hidesScratch: true,
    });
    this.#hasUsers = options.layout.users !== undefined && process.getuid?.() === 0;
  }

  get canChangeUser(): boolean {
    return this.#hasUsers;
  }
}

/** A stage's network is that of its helper: `''` of any open one. */
function placeOf({ place }: StageSpec): string {
  if (place?.image !== undefined || (place?.services?.length ?? 0) > 0)
    throw new UnstartableStage('it asks for an image or services, which a sandbox does not have');
  return place?.network === undefined || place.network === 'open' ? '' : place.network;
}

function launcher(
  { layout, deniedHosts = [] }: SandboxExecutorOptions,
  scratch: Scratch,
  limits: ShellLimits,
): (place: string) => Promise<Launch> {
  const filter = sandboxFilter();
  const parts: SandboxParts = {
    layout,
    filter: filter ?? new Uint8Array(),
    mountFolder: scratch.pipesFolder,
    resolverFile: scratch.publicFile('resolv.conf', RESOLVER_FILE),
    limits,
  };
  return async (place) =>
    launchSandbox(parts, place === 'none' ? null : networkRules(await addressesOf(deniedHosts), place === 'public'));
}
