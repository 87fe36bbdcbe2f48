/** What the partitions of a scheduler share, and when it is too much for new runs or grants. */

export interface SchedulerLoad {
  liveRuns: number;
  readonly liveRunsMax: number;
  /** About how much memory the live runs take, with their definitions; a key may take a quarter of the most. */
  liveBytes: number;
  readonly liveBytesMax: number;
  /** Of JOURNAL's bytes, 0 to 1: from 0.8 no creates, from 0.95 no grants (P8). */
  journalUsed: number;
  /** Bytes of ended runs that the store has not taken yet; from 256 MiB no creates (P6). */
  unprojectedBytes: number;
}

const CREATES_STOP_AT = 0.8;
const GRANTS_STOP_AT = 0.95;
const UNPROJECTED_BYTES_MAX = 256 * 1024 * 1024;
const LIVE_BYTES_SHARE_OF_KEY = 0.25;
/** From this part of what they may take on, what can wait outside of memory does: the rest is for what grows in it. */
const PARK_FROM = 0.8;

/** Why no run is created now; undefined: they are. */
export function overloadOf(load: SchedulerLoad): string | undefined {
  if (load.journalUsed >= CREATES_STOP_AT) return 'the journal is nearly full';
  if (load.unprojectedBytes >= UNPROJECTED_BYTES_MAX) return 'the store is too far behind';
  if (load.liveRuns >= load.liveRunsMax) return 'too many runs are live';
  if (hasNoBytesLeft(load)) return 'the live runs take all the memory that there is for them';
  return undefined;
}

/** Whether a key whose live runs take so much has all that it may have. */
export function isKeyFull(load: SchedulerLoad, bytes: number): boolean {
  return bytes >= load.liveBytesMax * LIVE_BYTES_SHARE_OF_KEY;
}

export function hasNoBytesLeft(load: SchedulerLoad): boolean {
  return load.liveBytes >= load.liveBytesMax;
}

/** Whether runs of a key whose live ones take so much are to wait outside of memory, where they can. */
export function isTight(load: SchedulerLoad, bytesOfKey: number): boolean {
  return load.liveBytes >= load.liveBytesMax * PARK_FROM || isKeyFull(load, bytesOfKey / PARK_FROM);
}

export function mayGrant(load: SchedulerLoad): boolean {
  return load.journalUsed < GRANTS_STOP_AT;
}
