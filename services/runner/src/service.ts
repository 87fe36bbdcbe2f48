/** `penstock service runner`: slots of this machine, on offer to all schedulers. */
import { hostname } from 'node:os';
import { resolve } from 'node:path';
import { defaultDataFolder } from '@penstock/config';
import { runService } from '@penstock/service';
import { hostsOf } from './executors/denied-hosts.ts';
import { MACHINE_KEYS, machineRunner } from './machine-runner.ts';
import { NotIsolated, RunnerFolderInUse } from './workspace/errors.ts';

export function runRunnerService(env: Readonly<Record<string, string | undefined>>): Promise<number> {
  return runService(
    {
      name: 'runner',
      keys: ['runnerId', ...MACHINE_KEYS],
      sendsTraces: true,
      async start({ settings, bus, log, meter, tracer, untilDone }) {
        const machine = await machineRunner({
          settings,
          bus,
          log,
          meter,
          tracer,
          dataDir: resolve(settings.dataDir ?? defaultDataFolder(env)),
          runnerId:
            settings.runnerId ??
            hostname()
              .replaceAll(/[^A-Za-z0-9_-]/gu, '-')
              .slice(0, 64),
          deniedHosts: (settings.natsUrl ?? []).flatMap(hostsOf),
        });
        const runner = await untilDone(
          'beginning a session',
          () => machine.begin(),
          (error) => !(error instanceof NotIsolated || error instanceof RunnerFolderInUse),
        );
        return {
          ready: () =>
            runner.session === null ? Promise.reject(new Error('between two sessions')) : Promise.resolve(),
          drain: [
            ['runner', () => runner.drain(settings.drain, { finishesRuns: true })],
            ['mirrors', () => machine.mirrors.close()],
          ],
        };
      },
    },
    env,
  );
}
