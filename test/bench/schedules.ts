/** What schedules cost an owner: memory of 10,000 that wait, and ticks fired a second when all of them are due in one minute. */
import { subjects, type CommittedEvents, type SetScheduleReply, type SetScheduleRequest } from '@penstock/bus';
import { keyOf, SERVICE_TENANT } from '@penstock/run';
import { makeDependencies } from './dependencies.ts';
import { settledMemory } from './memory.ts';

const SCHEDULES = 10_000;
const IN_FLIGHT = 100;
const MINUTE_MS = 60_000;
/** Until the next minute, and for all of them to be fired. */
const FIRED_MS_MAX = 5 * MINUTE_MS;

const YAML =
  "pipeline: {name: nightly}\nstages:\n  a: {run: 'true', runs_on: [nobody]}\n  b: {run: 'true', after: a}\n";

export async function benchSchedules(): Promise<string[]> {
  const around = await makeDependencies();
  try {
    const set = async (index: number, sequence: number, cron: string): Promise<void> => {
      const repository = `acme/r${index}`;
      const request: SetScheduleRequest = {
        tenant: SERVICE_TENANT,
        key: keyOf({ tenant: SERVICE_TENANT, repository, pipelineName: '' }),
        provider: 'git_host_a',
        repository,
        delivery: { sequence, storedAt: Date.now() },
        ref: 'refs/heads/main',
        commit: '1'.repeat(40),
        cloneUrl: '',
        source: '.pipeline.yaml',
        yaml: YAML,
        lines: [{ cron }],
        idKey: 'bench',
      };
      const reply = await around.bus.requestRetrying<SetScheduleRequest, SetScheduleReply>(
        subjects.owner(0, 'schedule'),
        request,
        { deadlineMs: 30_000, timeoutMs: 10_000 },
      );
      if (!reply.ok) throw new Error(reply.message);
    };
    const setAll = async (sequence: number, cron: string): Promise<void> => {
      for (let from = 0; from < SCHEDULES; from += IN_FLIGHT)
        await Promise.all(Array.from({ length: IN_FLIGHT }, (_, index) => set(from + index, sequence, cron)));
    };
    const before = await settledMemory();
    const beganAt = performance.now();
    await setAll(1, '7 7 7 7 *');
    const setMs = performance.now() - beganAt;
    const after = await settledMemory();
    const { minute, fired } = ticksOf(around.bus);
    // Each hour's minute after the one that is now, or the next but one where that is too near.
    const at = new Date(Date.now() + 45_000 + MINUTE_MS);
    await setAll(2, `${at.getUTCMinutes()} ${at.getUTCHours()} * * *`);
    const { firstAt, lastAt } = await fired;
    minute.stop();
    const each = (end: number, start: number): string => `${((end - start) / SCHEDULES / 1024).toFixed(1)} KiB`;
    const perSecond = (count: number, ms: number): string => `${Math.round((count / ms) * 1000)} a second`;
    return [
      `${SCHEDULES} schedules of one line: ${each(after.rss, before.rss)} of process memory, ${each(after.heap, before.heap)} of heap each; set ${perSecond(SCHEDULES, setMs)}`,
      `${SCHEDULES} ticks of one minute, fired by one owner, looked up and committed with their runs: ${perSecond(SCHEDULES - 1, lastAt - firstAt)}`,
    ];
  } finally {
    await around.close();
  }
}

function ticksOf(bus: Awaited<ReturnType<typeof makeDependencies>>['bus']): {
  readonly minute: { stop(): void };
  readonly fired: Promise<{ readonly firstAt: number; readonly lastAt: number }>;
} {
  const { promise, resolve, reject } = Promise.withResolvers<{ readonly firstAt: number; readonly lastAt: number }>();
  const late = setTimeout(() => reject(new Error('not all ticks were fired in time')), FIRED_MS_MAX);
  let [count, firstAt] = [0, 0];
  const minute = bus.subscribe<CommittedEvents>(subjects.events('*'), ({ events }) => {
    if (!events.some((event) => event.type === 'run_created' && event.origin.tick !== undefined)) return;
    firstAt ||= performance.now();
    count += 1;
    if (count < SCHEDULES) return;
    clearTimeout(late);
    resolve({ firstAt, lastAt: performance.now() });
  });
  return { minute, fired: promise };
}
