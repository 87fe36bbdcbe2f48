/** What a decision asks the shell to do once its events are committed (or, on a laptop, at once). */
export type RunEffect =
  /** These stages can be granted from now on; one that is cancelled or granted meanwhile is found out when picked. */
  | { readonly type: 'offer-stages'; readonly stages: readonly string[] }
  /** Send the job of a granted attempt to its runner. */
  | { readonly type: 'send-grant'; readonly stage: string; readonly attempt: number }
  /** Stop an attempt, again at each lease that still lists it. */
  | {
      readonly type: 'stop-attempt';
      readonly stage: string;
      readonly attempt: number;
      readonly reason: 'cancelled' | 'timeout';
    }
  /** Send `wake` at this time (milliseconds since 1970), or so long after the command's `at`. An earlier wake-up asked for before stays. */
  | { readonly type: 'wake-at'; readonly at: number }
  /** Only gates of the run are open: its place is free. */
  | { readonly type: 'rest' }
  /** A stage of a run without a place has fallen due: it is admitted once there is one. */
  | { readonly type: 'want-place' }
  /** The run has ended and nothing of it lives: its group, quota and workspaces are free. */
  | { readonly type: 'settle' };
