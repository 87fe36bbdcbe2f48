/** Pages of runs, and of a run's stages: their arguments as they are given. What makes no sense is `BadUserInput`. */
import { BadUserInput } from '@penstock/errors';
import { isRunId, refsOf, type RunStatus, type RunView, type StageView } from '@penstock/run';
import type { RunsPage } from '@penstock/run-client';
import { given, limitOf, type Maybe } from './arguments.ts';

export interface RunsArguments {
  readonly limit?: Maybe<number>;
  readonly before?: Maybe<string>;
  readonly pipelineName?: Maybe<string>;
  readonly status?: Maybe<RunStatus>;
  readonly repository?: Maybe<string>;
  readonly ref?: Maybe<string>;
}

export interface StagesArguments {
  readonly first?: Maybe<number>;
  readonly after?: Maybe<string>;
}

const RUNS_LIMIT = { default: 20, max: 100 } as const;

export function pageOf(args: RunsArguments): Pick<RunsPage, 'limit' | 'before' | 'filter'> {
  const ref = textOf(args.ref, 'ref');
  return {
    limit: limitOf(args.limit, RUNS_LIMIT),
    before: beforeOf(args.before),
    filter: {
      pipelineName: textOf(args.pipelineName, 'pipelineName'),
      repository: textOf(args.repository, 'repository'),
      refs: ref === undefined ? undefined : refsOf(ref),
      status: args.status ?? undefined,
    },
  };
}

/** In the order of the definition; `after` is the name of the last one of the page before. */
export function stagesPage({ id, stages }: RunView, { first, after }: StagesArguments): readonly StageView[] {
  const from = after == null ? 0 : stages.findIndex(({ name }) => name === after) + 1;
  if (after != null && from === 0)
    throw new BadUserInput(`'after' is '${after.slice(0, 100)}': the run '${id}' has no such stage.`);
  if (first != null && first < 1) throw new BadUserInput(`'first' is ${first}; it must be 1 or more.`);
  return from === 0 && first == null ? stages : stages.slice(from, first == null ? undefined : from + first);
}

function beforeOf(before: Maybe<string>): string | undefined {
  if (before == null) return undefined;
  if (!isRunId(before))
    throw new BadUserInput("'before' is no run's id: give the id of the last run of the page before.");
  return before;
}

function textOf(value: Maybe<string>, name: string): string | undefined {
  if (value == null) return undefined;
  if (value === '') throw new BadUserInput(`'${name}' is empty: leave it out where every run is wanted.`);
  return given(value, name);
}
