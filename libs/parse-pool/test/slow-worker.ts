/** A thread whose program takes seconds to load. */
import { setTimeout as pause } from 'node:timers/promises';

await pause(2_500);
await import('./fake-worker.ts');
