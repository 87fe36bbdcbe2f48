/** What a list costs: as many times what is asked of each of its elements as the list may have of them. */
import type { ArgumentNode, FieldNode } from 'graphql';
import { Kind } from './library.ts';

/** Values of variables; null: not known, so each may be the worst. */
export type Variables = Readonly<Record<string, unknown>> | null;

interface ListField {
  readonly argument: 'limit' | 'first';
  /** Counted where the argument is absent. */
  readonly usual: number;
  readonly max: number;
  /** What each element costs by itself, beside what is asked of it; 0 where it is answered with what was read for the list. */
  readonly each: number;
}

/** Pipelines have this many stages as a rule. More of them are bounded by the answer's size. */
const STAGES_USUAL = 20;

const LISTS: Readonly<Record<string, ListField>> = {
  runs: { argument: 'limit', usual: 20, max: 100, each: 0 },
  stages: { argument: 'first', usual: STAGES_USUAL, max: 2_000, each: 0 },
  pipelineHealth: { argument: 'limit', usual: 50, max: 500, each: STAGES_USUAL },
  extensions: { argument: 'limit', usual: 20, max: 100, each: 0 },
  extensionVersions: { argument: 'limit', usual: 100, max: 100, each: 0 },
  webhookDeliveries: { argument: 'limit', usual: 20, max: 100, each: 0 },
  runEvents: { argument: 'limit', usual: 100, max: 1_000, each: 0 },
  cases: { argument: 'first', usual: 100, max: 1_000, each: 0 },
  auditLog: { argument: 'limit', usual: 20, max: 1_000, each: 0 },
  adminAudit: { argument: 'limit', usual: 20, max: 1_000, each: 0 },
};

/** The events of the whole run are read for them, once: of 25 runs as they usually are, and of one run with 500 stages. */
const ATTEMPTS_COST = 60;

/** Fields for which the events or the tests of a whole run are read, however little is asked of them. */
const HISTORY_FIELDS: ReadonlySet<string> = new Set(['runEvents', 'attempts', 'cases']);
/** The store is asked for them, run by run. */
const CHILDREN_COST = 5;
/** A run's verdict may ask for others of its commit. */
const VERDICT_COST = 10;

/** Asked once for all stages of a run, and for all runs of a partition. */
const WAITS_COST = 2;

const COSTS: Readonly<Record<string, number>> = {
  attempts: ATTEMPTS_COST,
  children: CHILDREN_COST,
  verdict: VERDICT_COST,
  verdictEvidence: VERDICT_COST,
  waitingOn: WAITS_COST,
};

export function readsHistory({ name, arguments: given = [] }: FieldNode): boolean {
  return HISTORY_FIELDS.has(name.value) || given.some((argument) => argument.name.value === 'atVersion');
}

/** Of a field without a selection `below` is 0. */
export function fieldCost(field: FieldNode, below: number, variables: Variables): number {
  const list = Object.hasOwn(LISTS, field.name.value) ? LISTS[field.name.value] : undefined;
  if (list === undefined) return (Object.hasOwn(COSTS, field.name.value) ? (COSTS[field.name.value] ?? 1) : 1) + below;
  const argument = field.arguments?.find(({ name }) => name.value === list.argument);
  const count = Math.max(1, Math.min(list.max, countOf(argument, variables, list)));
  // Health is one object, whatever it was made of.
  return list.each > 0 ? 1 + below * STAGES_USUAL + count * list.each : 1 + count * below;
}

function countOf(argument: ArgumentNode | undefined, variables: Variables, { usual, max }: ListField): number {
  const value = argument?.value;
  if (value === undefined) return usual;
  if (value.kind === Kind.INT) return Number(value.value);
  if (value.kind !== Kind.VARIABLE) return usual;
  if (variables === null) return max;
  const given = variables[value.name.value];
  // An absent variable may have a default in the document, which is not looked up.
  if (given === undefined) return max;
  return typeof given === 'number' ? given : usual;
}
