/** Starts a scheduler in any process that has a bus and a store. */
import { SchedulerService } from './shell/scheduler.ts';
import type { Scheduler, SchedulerOptions } from './shell/scheduler-options.ts';

/** Resolves when it has joined; its partitions come as they are free. Rejects where it cannot join. */
export async function startScheduler(options: SchedulerOptions): Promise<Scheduler> {
  const scheduler = new SchedulerService(options);
  await scheduler.start();
  return scheduler;
}
