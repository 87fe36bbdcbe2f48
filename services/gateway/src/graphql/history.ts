/** Looking back: a run as it stood, its events and attempts, and what changed from one run to another. */
import { BadUserInput, NotFound } from '@penstock/errors';
import { grantedReaches, requireReader } from '@penstock/identity';
import { parsePipelineOffThread } from '@penstock/parse-pool';
import type { PipelineDefinition } from '@penstock/pipeline';
import {
  attemptsOf,
  compareViews,
  eventViewOf,
  isReached,
  readAdded,
  viewAt,
  type AttemptView,
  type RunEvent,
  type RunView,
  type StageView,
} from '@penstock/run';
import { readRunEvents, type Owners, type RunReads } from '@penstock/run-client';
import type { RunsReader } from '@penstock/store';
import type { People } from '../people/people.ts';
import { given, limitOf, type GraphqlContext, type Maybe } from './arguments.ts';
import type { GraphqlModule } from './graphql-module.ts';

export interface HistoryOptions {
  readonly owners: Owners;
  readonly store: RunsReader;
  readonly reads: RunReads;
  readonly people: People;
}

const EVENTS_LIMIT = { default: 100, max: 1_000 } as const;
/** Of what is remembered of one attempt. */
const ATTEMPT_CHARACTERS = 300;
/** As a trigger waits for its file. */
const PARSE_MS_MAX = 5_000;

const SDL = /* GraphQL */ `
  "One event of a run: the only thing that its state is made of (additional)."
  type RunEvent {
    "Of the run after this event; the first has 1."
    version: Int!
    type: String!
    "ISO 8601 in UTC."
    at: String!
    stage: String
    attempt: Int
    "A sentence for a person."
    summary: String!
    "The event as JSON, without addresses and sessions; with the pipeline file for those whose run it is."
    data: String!
  }

  "One execution of a stage (additional)."
  type StageAttempt {
    "From 1."
    number: Int!
    runner: String!
    "RUNNING, SUCCESS, FAILED or CANCELLED"
    status: RunStatus!
    reason: String
    exitCode: Int
    startedAt: String!
    finishedAt: String
    "How long the stage waited for a runner before it."
    queuedMs: Int!
    "Of its log; null where nobody has counted them."
    logBytes: String
  }

  "What became of a stage from run a to run b (additional)."
  type StageComparison {
    stage: String!
    "same, fixed (FAILED, then SUCCESS), broken (SUCCESS, then FAILED), changed, added or removed"
    change: String!
    a: StageRun
    b: StageRun
  }

  extend type StageRun {
    "All executions, the oldest first (additional)."
    attempts: [StageAttempt!]!
  }

  extend type Query {
    "The events of a run behind the version 'after', the oldest first; 'limit' is 100 where it is absent, at most 1,000 (additional)."
    runEvents(id: String, after: Int, limit: Int): [RunEvent!]!
    "The stages of two runs side by side: in the order of b, then what only a has (additional)."
    compareRuns(a: String, b: String): [StageComparison!]!
  }
`;

/** Which run a stage's view belongs to: a stage is answered apart from its run. */
const runs = new WeakMap<StageView, RunView>();
const attempts = new WeakMap<RunView, Promise<ReadonlyMap<string, readonly AttemptView[]>>>();

/** Remembers whose the stages are that are about to be answered. */
export function stagesOfRun(run: RunView, stages: readonly StageView[]): void {
  for (const stage of stages) runs.set(stage, run);
}

export function runOfStage(stage: StageView): RunView | undefined {
  return runs.get(stage);
}

/** Views of what a run was, not of what it is. */
const past = new WeakSet<RunView>();
/** The time of the last event of a view that was asked for by its version; read when somebody wants to know. */
const ends = new WeakMap<RunView, () => Promise<number>>();

export function isPast(run: RunView): boolean {
  return past.has(run);
}

/** Milliseconds since 1970: until when it tells what was, where it was asked for by its version. */
export async function toldUntil(run: RunView): Promise<number | undefined> {
  return await ends.get(run)?.();
}

export function historyModule({ owners, store, reads, people }: HistoryOptions): GraphqlModule {
  const eventsOf = async (run: RunView, after: number): Promise<readonly RunEvent[]> =>
    (await readRunEvents({ owners, store }, run.id, [run.tenant], 0)).slice(after);
  const attemptsKept = async (run: RunView, work: GraphqlContext['work']) => {
    // A view tells what its own events have made, though the run may have more by now.
    const all = attemptsOf((await eventsOf(run, 0)).slice(0, run.version));
    let count = 0;
    for (const { length } of all.values()) count += length;
    // They are kept to the operation's end, those of stages that are not asked for too.
    await work.keep(count * ATTEMPT_CHARACTERS);
    return all;
  };
  const readView = async (id: Maybe<string>, name: string, { caller }: GraphqlContext): Promise<RunView> => {
    const runId = given(id, name);
    const view = await reads.view(runId, requireReader(caller), () => people.namesOf(caller));
    if (view === null) throw new NotFound(`There is no run '${runId.slice(0, 100)}'.`);
    return view;
  };
  return {
    sdl: SDL,
    resolvers: {
      Query: {
        runEvents: async (
          _: unknown,
          args: { id?: Maybe<string>; after?: Maybe<number>; limit?: Maybe<number> },
          context: GraphqlContext,
        ) => {
          const after = args.after ?? 0;
          if (after < 0) throw new BadUserInput(`'after' is ${after}; it must be 0 or more.`);
          const limit = limitOf(args.limit, EVENTS_LIMIT);
          const { caller } = context;
          const run = await reads.view(given(args.id, 'id'), requireReader(caller), () => people.namesOf(caller));
          if (run === null) return [];
          const events = await context.work.read(() => eventsOf(run, after));
          const hasFile = mayChange(context.caller, run);
          return events.slice(0, limit).map((event, index) => eventViewOf(after + index + 1, event, hasFile));
        },
        compareRuns: async (_: unknown, args: { a?: Maybe<string>; b?: Maybe<string> }, context: GraphqlContext) => {
          const [a, b] = [await readView(args.a, 'a', context), await readView(args.b, 'b', context)];
          for (const run of [a, b]) stagesOfRun(run, run.stages);
          return await context.work.stages(compareViews(a, b), COMPARISON_BYTES_MIN);
        },
      },
      StageRun: {
        attempts: async (stage: StageView, _: unknown, { work }: GraphqlContext) => {
          const run = runs.get(stage);
          if (run === undefined || stage.attempt === 0) return [];
          let known = attempts.get(run);
          if (known === undefined) attempts.set(run, (known = work.read(() => attemptsKept(run, work))));
          return ((await known).get(stage.name) ?? []).map(shown);
        },
      },
    },
  };
}

/** Whether the run is one of the caller's own, as far as it is not only for reading. */
function mayChange(caller: GraphqlContext['caller'], run: RunView): boolean {
  const { writeTenant, changeTenants = [] } = caller;
  if (run.tenant === writeTenant || changeTenants.includes(run.tenant)) return true;
  return isReached(grantedReaches(caller, 'trigger'), run);
}

/** Of one stage of two runs, in JSON. */
const COMPARISON_BYTES_MIN = 20;

function shown(attempt: AttemptView): Omit<AttemptView, 'logBytes'> & { readonly logBytes: string | null } {
  return { ...attempt, logBytes: attempt.logBytes === null ? null : String(attempt.logBytes) };
}

/** As it was served after that event. Throws `BadUserInput` where it has no such version. */
export async function runAtVersion(
  { owners, store }: Pick<HistoryOptions, 'owners' | 'store'>,
  run: RunView,
  version: number,
): Promise<RunView> {
  if (version < 1 || version > run.version)
    throw new BadUserInput(`'atVersion' is ${version}; the run has the versions 1 to ${run.version}.`);
  const read = (): Promise<readonly RunEvent[]> => readRunEvents({ owners, store }, run.id, [run.tenant], 0);
  if (version === run.version) {
    const last = { ...run };
    ends.set(last, async () => (await read())[version - 1]?.at ?? 0);
    return last;
  }
  const events = await read();
  const definition = await definitionOf(events[0], run);
  await readAdded(definition, events.slice(0, version), (text, options) =>
    parsePipelineOffThread(text, { ...options, key: run.tenant }, PARSE_MS_MAX),
  );
  const view = viewAt(run.id, definition, events, version);
  past.add(view);
  const at = events[version - 1]?.at ?? 0;
  ends.set(view, async () => at);
  return view;
}

async function definitionOf(created: RunEvent | undefined, run: RunView): Promise<PipelineDefinition> {
  if (created?.type !== 'run_created' || created.yaml === '')
    return { name: run.pipelineName, schedule: [], stages: [] };
  const { yaml, extensions } = created;
  const options = {
    template: true,
    standing: true,
    key: run.tenant,
    ...(extensions === undefined ? {} : { extensions }),
  } as const;
  const parsed = await parsePipelineOffThread(yaml, options, PARSE_MS_MAX);
  if (!parsed.ok) throw new BadUserInput(`The file of the run '${run.id}' cannot be read any more by this version.`);
  return parsed.definition;
}
