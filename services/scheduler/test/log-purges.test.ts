import { machineTime } from '@penstock/async';
import { silentLog } from '@penstock/telemetry/log';
import { expect, it } from 'vitest';
import { LogPurges } from '../src/shell/log-purges.ts';

it('P34: what the runs of a tenant have left is removed though another has deleted more than may wait, and before all of that', async () => {
  const purged: string[] = [];
  const first = Promise.withResolvers<void>();
  const last = Promise.withResolvers<void>();
  const stopped = new AbortController();
  const purges = new LogPurges({
    purge: async (runId) => {
      await first.promise;
      if (purged.push(runId) === 3) last.resolve();
    },
    time: machineTime,
    log: silentLog,
    signal: stopped.signal,
  });
  purges.add(Array.from({ length: 12_000 }, (_, run) => ({ id: `ada${run}`, tenant: 'ada' })));
  purges.add([{ id: 'bob', tenant: 'bob' }]);
  first.resolve();
  await last.promise;
  expect(purged).toContain('bob');
  stopped.abort();
});
