/** What runs and their stages wait for: asked of their owners, once for all fields of an operation. */
import { within } from '@penstock/async';
import { Unavailable } from '@penstock/errors';
import { isEnded, isoTime, type RunId, type RunView, type RunWaits, type StageView, type Wait } from '@penstock/run';
import type { Owners } from '@penstock/run-client';
import type { GraphqlContext } from './arguments.ts';
import type { GraphqlModule } from './graphql-module.ts';
import { isPast, runOfStage } from './history.ts';
import type { OperationWork } from './operation-work.ts';

const SDL = /* GraphQL */ `
  "Something that a run or a stage waits for (additional)."
  type Waiting {
    """
    dependency (a stage before it), quota (its owner's runs at a time), concurrency (its group, or max_parallel), runner (no free slot),
    no_runner (no runner can take it), approval, backoff (its next attempt), paused (an administrator holds it up), store or broker (the
    server itself cannot go on).
    """
    kind: String!
    "The id of the run, or the name of the stage of this run, that is waited for; null for a run that is not the caller's to see."
    holder: String
    "Among those that wait for the same, from 1; null where there is no order, or thousands wait before it."
    position: Int
    "ISO 8601 in UTC."
    since: String
    "From now, as the medians of the last 20 runs tell; null where nobody knows."
    etaSecs: Int
    "A sentence for a person."
    message: String!
  }

  extend type PipelineRun {
    "What the run waits for now: never empty while the run or a stage of it waits, and empty once it has ended (additional)."
    waitingOn: [Waiting!]!
  }

  extend type StageRun {
    "What the stage waits for now; of a run that is held, what the run does (additional)."
    waitingOn: [Waiting!]!
  }
`;

/** An owner answers in milliseconds; who asks why something waits is not to wait long for it. */
const ANSWER_MS_MAX = 3_000;
/** An owner that leaves runs to be asked for again has answered some. Of what is still left then it is said that it was not told. */
const ASKS_MAX = 20;
/** Of one entry, as it is kept to the operation's end. */
const ENTRY_CHARACTERS = 250;

export function waitsModule({ owners }: { readonly owners: Owners }): GraphqlModule {
  const asking = new WeakMap<OperationWork, Asking>();
  const waitsOf = (run: RunView, { caller, work }: GraphqlContext): Promise<Answer> => {
    let ask = asking.get(work);
    if (ask === undefined) asking.set(work, (ask = new Asking(owners, caller.readTenants, work)));
    return ask.waitsOf(run.id);
  };
  return {
    sdl: SDL,
    resolvers: {
      PipelineRun: {
        waitingOn: async (run: RunView, _: unknown, context: GraphqlContext) => {
          if (isEnded(run.status) || isPast(run)) return [];
          const waits = await waitsOf(run, context);
          if (isUntold(waits)) return [UNTOLD[waits]];
          if (run.stages.length > 0 && !run.stages.some(isWaiting)) return [];
          const found = waits?.waits ?? [];
          return found.length === 0 && run.stages.length > 0 ? [gone(run.status)] : found.map(shown);
        },
      },
      StageRun: {
        waitingOn: async (stage: StageView, _: unknown, context: GraphqlContext) => {
          const run = runOfStage(stage);
          if (run === undefined || !isWaiting(stage) || isEnded(run.status) || isPast(run)) return [];
          const waits = await waitsOf(run, context);
          if (isUntold(waits)) return [UNTOLD[waits]];
          const found = waits?.of(stage.name) ?? [];
          return found.length === 0 ? [gone(stage.status)] : found.map(shown);
        },
      },
    },
  };
}

/** Why nobody says what a run waits for: its owner does not answer, or has answered of others of them for long. */
type Untold = 'away' | 'busy';

/** `undefined`: its owner has no such run any more. */
type Answer = WaitsAnswered | Untold | undefined;

/** What an owner has said, and of the runs that are not in it, why not. */
interface Told {
  readonly found: ReadonlyMap<RunId, RunWaits>;
  readonly others: Untold | undefined;
}

class WaitsAnswered {
  readonly waits: readonly Wait[];
  readonly #run: RunWaits;
  readonly #stages: ReadonlyMap<string, readonly Wait[]>;

  constructor(run: RunWaits) {
    this.waits = run.waits;
    this.#run = run;
    this.#stages = new Map(run.stages);
  }

  of(stage: string): readonly Wait[] {
    if (this.#run.stages === undefined) return this.waits;
    return this.#stages.get(stage) ?? (this.#run.isCut === true ? this.waits : []);
  }
}

/** Runs of one partition that are asked for in one turn of the loop are one request. */
class Asking {
  readonly #owners: Owners;
  readonly #tenants: readonly string[];
  readonly #work: OperationWork;
  readonly #answers = new Map<RunId, Promise<Answer>>();
  #next = new Map<number, { readonly ids: RunId[]; readonly answers: Promise<Told> }>();

  constructor(owners: Owners, tenants: readonly string[], work: OperationWork) {
    this.#owners = owners;
    this.#tenants = tenants;
    this.#work = work;
  }

  waitsOf(id: RunId): Promise<Answer> {
    let known = this.#answers.get(id);
    if (known === undefined) this.#answers.set(id, (known = this.#ask(id)));
    return known;
  }

  async #ask(id: RunId): Promise<Answer> {
    const partition = this.#owners.partitionOf(id);
    let next = this.#next.get(partition);
    if (next === undefined) {
      const ids: RunId[] = [];
      next = { ids, answers: this.#askSoon(partition, ids) };
      this.#next.set(partition, next);
    }
    next.ids.push(id);
    const { found, others } = await next.answers;
    const its = found.get(id);
    return its === undefined ? others : new WaitsAnswered(its);
  }

  async #askSoon(partition: number, ids: readonly RunId[]): Promise<Told> {
    await new Promise<void>((resolve) => setImmediate(resolve));
    this.#next.delete(partition);
    const found = new Map<RunId, RunWaits>();
    const late = new AbortController();
    const others = await within(ANSWER_MS_MAX, this.#all(partition, ids, found, late.signal), () => {
      late.abort();
      return found.size > 0 ? ('busy' as const) : ('away' as const);
    });
    return { found, others };
  }

  /** Puts what is told into `found`. */
  async #all(
    partition: number,
    ids: readonly RunId[],
    found: Map<RunId, RunWaits>,
    late: AbortSignal,
  ): Promise<Untold | undefined> {
    let asked = ids;
    for (let asks = 0; asked.length > 0; asks++) {
      if (asks === ASKS_MAX) return 'busy';
      try {
        const { runs, rest = [] } = await this.#owners.waits(partition, { runIds: asked, tenants: this.#tenants });
        for (const run of runs) {
          if (late.aborted) return 'busy';
          await this.#work.keep(entriesOf(run) * ENTRY_CHARACTERS);
          found.set(run.id, run);
        }
        asked = rest;
      } catch (error) {
        if (error instanceof Unavailable) return 'away';
        throw error;
      }
    }
    return undefined;
  }
}

function entriesOf({ waits, stages = [] }: RunWaits): number {
  return stages.reduce((sum, [, ofStage]) => sum + ofStage.length, waits.length);
}

function isWaiting({ status }: Pick<StageView, 'status'>): boolean {
  return status === 'PENDING' || status === 'QUEUED';
}

function shown({ kind, holder, position, since, etaMs, message }: Wait): object {
  return {
    kind,
    holder: holder ?? null,
    position: position ?? null,
    since: since === undefined ? null : isoTime(since),
    etaSecs: etaMs === undefined ? null : Math.ceil(etaMs / 1000),
    message,
  };
}

const UNTOLD: Readonly<Record<Untold, object>> = {
  away: shown({
    kind: 'broker',
    message:
      'The scheduler that has the run does not answer: it goes on once that one, or another in its place, is there.',
  }),
  busy: shown({
    kind: 'broker',
    message:
      'What it waits for was not looked at: that of the others took the time of this answer. Ask for this run alone, or for fewer.',
  }),
};

function isUntold(answer: Answer): answer is Untold {
  return typeof answer === 'string';
}

/** It stood waiting when it was read, and has gone on until its owner was asked. */
function gone(status: RunView['status']): object {
  const kind = status === 'PENDING' ? 'dependency' : 'runner';
  return shown({ kind, etaMs: 0, message: 'It has gone on just now: ask again.' });
}
