/** The runner of a machine of its own, as its variables say: with mirrors, executors and folders, on a bus that it is given. */
import { arch, platform } from 'node:os';
import { join } from 'node:path';
import { makeFolderSync } from '@penstock/async';
import type { Bus } from '@penstock/bus';
import type { Configuration } from '@penstock/config';
import type { MirrorCache } from '@penstock/git';
import { openMirrors } from '@penstock/git/mirrors';
import type { Logger } from '@penstock/telemetry';
import type { Meter } from '@penstock/telemetry/metrics';
import { defaultSlots } from './executors/default-slots.ts';
import { findExecutors, leastIsolation } from './executors/find-executors.ts';
import { kubernetesSettings } from './executors/kubernetes-source.ts';
import { stageLimitsOf } from './executors/stage-limits.ts';
import type { Runner, RunnerOptions } from './runner-options.ts';
import { startRunner } from './start.ts';

/** Where stages run on a machine, and how. */
export const STAGE_KEYS = [
  'drain',
  'stageUids',
  'stageDeny',
  'stagePaths',
  'stageEnv',
  'stageMemoryBytes',
  'stageProcesses',
  'stageDiskBytes',
  'allowUnisolated',
  'executors',
  'untrustedIsolation',
  'k8sNamespace',
  'k8sKubeconfig',
  'k8sImage',
  'k8sGuardImage',
  'k8sSetupTimeout',
  'k8sNetworkPolicies',
] as const;

export const MACHINE_KEYS = [
  'dataDir',
  'slots',
  'runnerLabels',
  'runnerLeaseSecs',
  'mode',
  ...STAGE_KEYS,
  'gitAllowedHosts',
  'gitCredentialsFile',
  'gitCacheBytesMax',
] as const;

type MachineSettings = Configuration<(typeof MACHINE_KEYS)[number]>;

export interface MachineRunner {
  readonly mirrors: MirrorCache;
  /** May be called again where it rejects. */
  begin(): Promise<Runner>;
}

export interface MachineRunnerOptions extends Pick<
  RunnerOptions,
  'runnerId' | 'hearsMembers' | 'tenant' | 'deniedHosts' | 'once'
> {
  readonly settings: MachineSettings;
  readonly bus: Bus;
  readonly log: Logger;
  readonly meter: Meter;
  readonly tracer: RunnerOptions['tracer'];
  /** Made where it is missing. */
  readonly dataDir: string;
}

/** Resolves when it is known what stages can run in here. */
export async function machineRunner(options: MachineRunnerOptions): Promise<MachineRunner> {
  const {
    settings,
    log,
    dataDir,
    settings: { stageDeny },
  } = options;
  makeFolderSync(dataDir);
  const mode = settings.mode ?? 'production';
  const mirrors = openMirrors({
    folder: join(dataDir, 'runner', 'mirrors'),
    bytesMax: settings.gitCacheBytesMax,
    policy: { mode, allowedHosts: settings.gitAllowedHosts },
    credentialsFile: settings.gitCredentialsFile,
    log,
  });
  const stageUids = settings.stageUids ?? undefined;
  const executors = await findExecutors({
    wanted: settings.executors,
    mode,
    stageUids,
    onLacking: (kind, why) => log.info({ executor: kind, why }, 'stages cannot run in one of these here'),
    kubernetes: kubernetesSettings(settings),
  });
  const { bus, meter, tracer, runnerId, hearsMembers, tenant, once } = options;
  return {
    mirrors,
    begin: () =>
      startRunner({
        bus,
        log,
        meter,
        tracer,
        dataDir,
        mirrors,
        runnerId,
        hearsMembers,
        tenant,
        once,
        slots: settings.slots ?? defaultSlots(settings.stageMemoryBytes),
        labels: [...new Set([platform(), arch(), ...settings.runnerLabels])].toSorted(),
        leaseMs: settings.runnerLeaseSecs * 1000,
        stageUids,
        deniedHosts: [...(options.deniedHosts ?? []), ...stageDeny],
        stagePaths: settings.stagePaths,
        stageEnv: settings.stageEnv,
        stageLimits: stageLimitsOf(settings),
        executors,
        takesUp: true,
        untrustedIsolation: leastIsolation(settings.untrustedIsolation, mode),
        isolationRequired: settings.mode !== 'development' && !settings.allowUnisolated,
      }),
  };
}
