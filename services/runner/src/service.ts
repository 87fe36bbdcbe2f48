/** `penstock service runner`: slots of this machine, on offer to all schedulers. */
import { mkdirSync } from 'node:fs';
import { arch, hostname, platform } from 'node:os';
import { join, resolve } from 'node:path';
import { defaultDataFolder } from '@penstock/config';
import { openMirrors } from '@penstock/git';
import { runService } from '@penstock/service';
import { hostsOf } from './executors/denied-hosts.ts';
import { defaultSlots } from './executors/default-slots.ts';
import { stageLimitsOf } from './executors/stage-limits.ts';
import { findExecutors, leastIsolation } from './executors/find-executors.ts';
import { kubernetesSettings } from './executors/kubernetes-source.ts';
import { NotIsolated } from './workspace/errors.ts';
import { startRunner } from './start.ts';

export function runRunnerService(env: Readonly<Record<string, string | undefined>>): Promise<number> {
  return runService(
    {
      name: 'runner',
      keys: [
        'dataDir',
        'runnerId',
        'slots',
        'runnerLabels',
        'runnerLeaseSecs',
        'mode',
        'drain',
        'stageUids',
        'stageDeny',
        'stagePaths',
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
        'gitAllowedHosts',
        'gitCredentialsFile',
        'gitCacheBytesMax',
      ],
      async start({ settings, bus, log, meter, untilDone }) {
        const dataDir = resolve(settings.dataDir ?? defaultDataFolder(env));
        mkdirSync(dataDir, { recursive: true, mode: 0o700 });
        const mode = settings.mode ?? 'production';
        const mirrors = openMirrors({
          folder: join(dataDir, 'runner', 'mirrors'),
          bytesMax: settings.gitCacheBytesMax,
          policy: {
            mode,
            allowedHosts: settings.gitAllowedHosts,
          },
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
        const runner = await untilDone(
          'beginning a session',
          () =>
            startRunner({
              bus,
              log,
              meter,
              dataDir,
              mirrors,
              runnerId:
                settings.runnerId ??
                hostname()
                  .replaceAll(/[^A-Za-z0-9_-]/gu, '-')
                  .slice(0, 64),
              slots: settings.slots ?? defaultSlots(settings.stageMemoryBytes),
              labels: [...new Set([platform(), arch(), ...settings.runnerLabels])].toSorted(),
              leaseMs: settings.runnerLeaseSecs * 1000,
              stageUids,
              deniedHosts: [...(settings.natsUrl ?? []).flatMap(hostsOf), ...settings.stageDeny],
              stagePaths: settings.stagePaths,
              stageLimits: stageLimitsOf(settings),
              executors,
              takesUp: true,
              untrustedIsolation: leastIsolation(settings.untrustedIsolation, mode),
              isolationRequired: settings.mode !== 'development' && !settings.allowUnisolated,
            }),
          (error) => !(error instanceof NotIsolated),
        );
        return {
          ready: () =>
            runner.session === null ? Promise.reject(new Error('between two sessions')) : Promise.resolve(),
          drain: [
            ['runner', () => runner.drain(settings.drain)],
            ['mirrors', () => mirrors.close()],
          ],
        };
      },
    },
    env,
  );
}
