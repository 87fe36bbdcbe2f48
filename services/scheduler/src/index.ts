export { startScheduler, type Scheduler, type SchedulerOptions } from './shell/scheduler.ts';
export { runSchedulerService } from './service.ts';
