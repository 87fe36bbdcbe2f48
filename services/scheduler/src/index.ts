export { startScheduler } from './shell/scheduler.ts';
export type { Scheduler, SchedulerOptions } from './shell/scheduler-options.ts';
export { runSchedulerService } from './service.ts';
