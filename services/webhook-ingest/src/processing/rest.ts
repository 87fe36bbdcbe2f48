/** How long the processing rests after a delivery, so that others have the processors. */

export interface Others {
  /** Pushes come so fast that taking them in wants all there is. */
  readonly isIntakeBusy: boolean;
  /** Somebody asks for runs otherwise, on this machine. */
  readonly areRunsAsked: boolean;
}

/** A twentieth of one processor is left to the processing while pushes come fast, and at least a delivery a second. */
const SHARE_FOR_INTAKE = 19;
const MS_MAX_FOR_INTAKE = 1_000;
/** Half of the time while runs are asked for otherwise: each of their dozen steps stands behind what a delivery is doing. */
const SHARE_FOR_RUNS = 1;
/** What takes longer waits for a host, and keeps nobody from anything. */
const MS_MAX_FOR_RUNS = 50;

/** What the last delivery took, and how long ago it ended: since then the processing has rested already. */
export interface Last {
  readonly tookMs: number;
  readonly endedMsAgo: number;
}

export function restMs({ tookMs, endedMsAgo }: Last, { isIntakeBusy, areRunsAsked }: Others): number {
  let ms = 0;
  if (isIntakeBusy) ms = Math.min(MS_MAX_FOR_INTAKE, tookMs * SHARE_FOR_INTAKE);
  else if (areRunsAsked) ms = Math.min(MS_MAX_FOR_RUNS, tookMs * SHARE_FOR_RUNS);
  return Math.max(0, ms - endedMsAgo);
}
