/** Rules broken on purpose, to prove that the simulation sees it. Each names the rule that it breaks. */

export const mutations = {
  'no-expected-sequence': 'P1: the broker takes a commit whatever stands before it',
  'acts-before-acknowledgement': 'P1: replies, grants and events go out before the commit is stored',
  'opens-by-force': 'P3: a partition is opened while its owner lives',
  'acts-for-ever': 'P4: an owner answers and sends however old its renewal is',
  'own-timer-declares-loss': 'P5: a scheduler declares a session lost by its own timer',
  'waits-by-the-wall-clock': 'P5: a partition counts what it waits for by the wall clock',
  'checkpoint-first': 'P6: the projector writes the checkpoint before the documents',
  'never-owned-believed': 'P7: every owner takes itself for the first of its partition, and asks the store about no id',
  'ids-by-the-clock': 'P7: an owner trusts its clock to know the ids that earlier owners can have created',
  'late-no-responders-frees': 'P12: "no responders" to a repeated grant frees it',
  'stops-forgotten': 'P14: a runner takes a grant that comes after its stop',
  'guard-counts-from-the-line': 'P15: the guard counts from when the renewal was answered',
  'no-guard': 'P15: nobody ends the processes of a runner that cannot renew',
  'month-forgotten': 'P23: a take-over does not read how many runs keys have had in a month',
  'slots-forgotten': 'P23: a take-over does not read how many runs of a key may go on at once',
  'held-left-aside': 'P23: a take-over leaves held runs aside',
  'counters-last': 'P23: the projector writes the counters behind the checkpoint',
} as const;

export type Mutation = keyof typeof mutations;

export function isMutation(name: string): name is Mutation {
  return Object.hasOwn(mutations, name);
}
