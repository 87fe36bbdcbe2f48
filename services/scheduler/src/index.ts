export { startScheduler } from './start.ts';
export type { Scheduler, SchedulerOptions } from './shell/scheduler-options.ts';
export { LOG_BYTES_MAX } from './shell/scheduler.ts';
export { runSchedulerService } from './service.ts';
