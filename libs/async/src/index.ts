export { type Backoff, backoffMs, withoutJitter } from './backoff.ts';
export { bootClock, bootMs, uptimeMs } from './boot-clock.ts';
export { BoundedQueue } from './bounded-queue.ts';
export { unlessAborted, within } from './deadline.ts';
export { FairQueue } from './fair-queue.ts';
export { FairRoom, type RoomBounds } from './fair-room.ts';
export { pause, pauseOrAbort } from './pause.ts';
export { deadlineIn, machineTime, type Time } from './time.ts';
export { answerTasks, TaskThread, type TaskThreadOptions } from './task-thread.ts';
