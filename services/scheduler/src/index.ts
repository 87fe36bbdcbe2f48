export { startScheduler } from './start.ts';
export type { Scheduler, SchedulerOptions } from './shell/scheduler-options.ts';
export { runSchedulerService } from './service.ts';
