/** Rules broken on purpose, to prove that the simulation sees it. Each names the rule that it breaks. */

export const mutations = {
  'no-expected-sequence': 'P1: the broker takes a commit whatever stands before it',
  'opens-by-force': 'P3: a partition is opened while its owner lives',
  'acts-for-ever': 'P4: an owner answers and sends however old its renewal is',
  'waits-by-the-wall-clock': 'P5: a partition counts what it waits for by the wall clock',
  'forgets-the-old-bucket': 'P5: what is missing in a bucket that was made anew counts as over at once',
  'checkpoint-first': 'P6: the projector writes the checkpoint before the documents',
  'late-no-responders-frees': 'P12: "no responders" to a repeated grant frees it',
  'guard-counts-from-the-line': 'P15: the guard counts from when the renewal was answered',
  'no-guard': 'P15: nobody ends the processes of a runner that cannot renew',
  'no-fair-slots': 'fair slots: a key may have every slot while another waits',
  'journal-of-any-replica': 'P3, P6: the last commit of a log is read from a replica that may be behind',
  'log-of-any-replica': 'P21: what a replica of the log lacks counts as missing',
  'cursor-of-what-is-stored': 'P21: a cursor names what is stored, not what was told',
  'keeps-quiet-journals': 'P8: the journal of a partition in which nothing happens is not purged',
  'counters-last': 'P23: the projector writes the counters behind the checkpoint',
  'keeps-reasons-to-itself': 'WAITING-1: an owner does not say what stages wait for that come after others',
  'forgets-stored-heads': 'P27: nobody asks the store for the head of a pull request',
  'forgets-added-stages': 'P29: the owner of a run reads what a stage adds as if it were nothing',
  'parents-without-outputs': 'P30: an owner reads the run that is repeated without what its stages have put out',
  'schedules-last': 'P28: the projector writes schedules behind the checkpoint',
  'forgets-the-deleted': 'P34: the store says of an id that was deleted that nobody has used it',
  'outbox-last': 'P35: the projector inserts what webhooks are told behind the checkpoint',
  'pauses-not-read': 'P35: an owner does not read what was paused before it began',
  'ticks-not-looked-up': 'P28: nobody asks the store whether a tick was fired',
  'lists-before-contents': 'P32: a runner has a list stored before what it names is',
  'sweeps-behind-the-log': 'P32: the sweep asks nobody about a run that has no document',
  'sweeps-open-runs': 'P32: the sweep takes what runs have kept that are not closed',
  'sweeps-by-any-clock': 'P32: what has expired by the clock of one machine goes at once',
  'forgets-heirs': 'P30, P34: what a deleted run has kept goes, whoever has taken it over',
  'newest-caches-win': 'P33: of two successes that name one key the one that came last stands',
  'caches-without-trust': 'P33: what a run without trust has cached is found by those that are trusted',
  'shares-tenants-runners': "P37: owners take a tenant's own runner for everybody's",
} as const;

export type Mutation = keyof typeof mutations;

export function isMutation(name: string): name is Mutation {
  return Object.hasOwn(mutations, name);
}
