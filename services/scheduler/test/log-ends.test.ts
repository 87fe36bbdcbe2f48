import { machineTime } from '@penstock/async';
import { type AttemptLogRef, LogEnds, type SchedulerPorts } from '@penstock/scheduler/testing';
import { silentLogger } from '@penstock/telemetry';
import { failuresAt } from '@penstock/telemetry/borders';
import { expect, it, vi } from 'vitest';

const RUN = '01a22ee6-8e62-72d4-9c17-d28f793c789e';

const logOf = (stage: string): AttemptLogRef => ({ runId: RUN, key: 'ada', runner: 'r1', stage, attempt: 1 });

/** The broker is away until `back`, and answers the names of what it is asked for as it comes. */
function ends() {
  const tries: string[][] = [];
  const paused: (() => void)[] = [];
  let away = true;
  const ports: Pick<SchedulerPorts, 'markLogEnds' | 'time'> = {
    time: { ...machineTime, pause: () => new Promise<void>((resolve) => void paused.push(resolve)) },
    markLogEnds: (_runId, logs) => {
      tries.push(logs.map(({ stage }) => stage));
      return away
        ? Promise.reject(new Error('the broker is away'))
        : Promise.resolve(logs.map((_log, index) => index + 1));
    },
  };
  const failed = vi.fn<(error: unknown) => void>();
  const logEnds = new LogEnds({ ports, log: silentLogger(), signal: new AbortController().signal, failed });
  const back = async (): Promise<void> => {
    await vi.waitFor(() => expect(paused).toHaveLength(1));
    away = false;
    paused[0]?.();
  };
  return { logEnds, tries, back, failed };
}

it('P5: closes no log after an outage whose end does not stand any more, and those of the others', async () => {
  const { logEnds, tries, back } = ends();
  const closed: string[] = [];
  let stands = true;
  logEnds.close(
    logOf('first'),
    () => stands,
    () => closed.push('first'),
  );
  // It waits for the try that is under way, and is first tried after the outage.
  logEnds.close(
    logOf('second'),
    () => stands,
    () => closed.push('second'),
  );
  const others = new Promise<number>((resolve) => logEnds.close(logOf('stopped'), () => true, resolve));
  stands = false;
  await back();
  await expect(others).resolves.toBe(1);
  expect(tries).toEqual([['first'], ['stopped']]);
  expect(closed).toEqual([]);
});

it('P5, P21: closes the log of a loss that was let go once it is declared anew', async () => {
  const { logEnds, tries, back } = ends();
  let stands = true;
  const asked = new Promise<void>((resolve) => {
    logEnds.close(
      logOf('a'),
      () => {
        if (!stands) resolve();
        return stands;
      },
      () => expect.unreachable('its end stands no more'),
    );
  });
  stands = false;
  await back();
  await asked;
  const sequence = await new Promise<number>((resolve) => logEnds.close(logOf('a'), () => true, resolve));
  expect(sequence).toBe(1);
  expect(tries).toEqual([['a'], ['a']]);
});

it('what throws while a log is closed is told to its partition, counted, and rejects nothing that nobody awaits', async () => {
  const { logEnds, failed } = ends();
  const before = failuresAt('partition.log-ends');
  const fault = new Error('nobody knows whether it stands');
  logEnds.close(
    logOf('a'),
    () => {
      throw fault;
    },
    () => expect.unreachable('it is not closed'),
  );
  await vi.waitFor(() => expect(failed).toHaveBeenCalledWith(fault));
  expect(failuresAt('partition.log-ends')).toBe(before + 1);
});

it('P21: closes the logs of a tenant while those of another, however many and long, are still read', async () => {
  const read: string[] = [];
  const ports: Pick<SchedulerPorts, 'markLogEnds' | 'time'> = {
    time: machineTime,
    markLogEnds: (runId) => {
      read.push(runId);
      return runId.startsWith('long') ? new Promise(() => {}) : Promise.resolve([1]);
    },
  };
  const failed = (): void => expect.unreachable();
  const logEnds = new LogEnds({ ports, log: silentLogger(), signal: new AbortController().signal, failed });
  const close = (runId: string, key: string): Promise<number> =>
    new Promise((resolve) => logEnds.close({ ...logOf('a'), runId, key }, () => true, resolve));
  for (let run = 0; run < 100; run += 1) void close(`long${run}`, 'bob');
  await expect(close('short', 'ada')).resolves.toBe(1);
  expect(read.length).toBeLessThan(9);
});
