/** The default run of the simulation: how many seeds, and what must have happened in them for their silence to mean something. */

export const SEEDS_DEFAULT = 2_000;

export const expectedMarks: readonly string[] = [
  // Faults.
  'broker down', 'broker\'s answer lost', 'journal full', 'journal half full', 'journal nearly full', 'message doubled', 'message lost', 'power cut',
  'projection failed', 'runner crashed', 'runner cut off', 'runner frozen', 'scheduler crashed', 'scheduler cut off', 'scheduler frozen',
  'scheduler stopped', 'slow message', 'store down', 'store\'s answer lost',
  // The log and its owner (P1 to P9).
  'append recognised by its commit id', 'append refused', 'append without answer', 'commit with several runs', 'create asks the store',
  'create unavailable', 'create without answer', 'created', 'created before', 'created before, and closed', 'hand-over', 'hand-over failed',
  'lease read back', 'log lost its end', 'log purged', 'membership lost', 'new incarnation', 'no owner responds', 'opened at the word of its release', 'opening failed', 'owner deposed',
  'owner finds its log cut', 'partition handed back that was not open', 'store ahead of its log', 'take-over with runs', 'two owners listen',
  'word of a lower epoch dropped',
  // Owner and runner (P10 to P19).
  'attempt lost', 'attempt of an ended run gone', 'credit withdrawn', 'grant refused', 'grant refused after its stop', 'grant returned',
  'guard ended a process', 'no responders to a first grant', 'no responders to a repeated grant', 'repeated grant taken', 'result committed',
  'result obsolete', 'session fenced', 'stop answered gone', 'workspace lost',
  // Runs.
  'cancel of a run not in memory', 'cancel of an ended run', 'cancelled', 'create refused by a newer build', 'no runner came', 'retry after exit',
  'retry after runner_lost', 'retry after timeout', 'run could not be restored', 'run ended CANCELLED', 'run ended FAILED', 'run ended SKIPPED',
  'run ended SUCCESS', 'run ended interrupted', 'run ended quarantined', 'run held by its group', 'run held by its quota', 'create over the month\'s limit', 'stage skipped: dependency', 'stage skipped: when',
  'stage stopped: cancelled', 'stage stopped: timeout',
  // Watching (P20).
  'read from the store', 'watched from the store', 'watcher found a gap',
];
