/** What repositories want a server to start by itself (P28): the lines of their files, asked of the owners that fire them. */
import type { ScheduleView } from '@penstock/bus';
import { NotFound } from '@penstock/errors';
import { actorOf, requireChanger, requireCredential, requireOwnRuns } from '@penstock/identity';
import { isRunId, partitionOfKey, SERVICE_TENANT } from '@penstock/run';
import type { Owners } from '@penstock/run-client';
import type { AuditLog } from '@penstock/store';
import { given, type GraphqlContext, type Maybe } from './arguments.ts';
import type { GraphqlModule } from './graphql-module.ts';

export interface SchedulesOptions {
  readonly owners: Owners;
  readonly audit: AuditLog;
  /** Milliseconds since 1970. */
  readonly now: () => number;
}

const LISTED_MAX = 10_000;

const SDL = /* GraphQL */ `
  "A line of a repository's schedule, as its newest file has it (additional)."
  type Schedule {
    id: String!
    provider: String!
    repository: String!
    "Five fields: minute, hour, day of the month, month, day of the week, in UTC."
    cron: String!
    "What its runs are given."
    inputs: [KeyValue!]!
    "ISO 8601 in UTC; null while it is paused."
    nextAt: String
    "Null where it has started none yet."
    lastRunId: String
    paused: Boolean!
  }

  "The time of a schedule that a run is for (additional)."
  type ScheduleTick {
    cron: String!
    "ISO 8601 in UTC."
    at: String!
    "How many times of the line before it were missed, while nobody was there to start a run."
    missed: Int!
  }

  extend type PipelineRun {
    "Null of a run that no schedule began (additional)."
    tick: ScheduleTick
  }

  extend type Query {
    "Those of the caller's tenant, by repository; at most 10,000 (additional)."
    schedules: [Schedule!]!
  }

  extend type Mutation {
    "Nothing is started by it until it is resumed, also where newer files have the line; saying it again changes nothing (additional)."
    pauseSchedule(id: String): Schedule!
    "From its next time on; what came while it was paused is not made up for (additional)."
    resumeSchedule(id: String): Schedule!
  }
`;

export function schedulesModule({ owners, audit, now }: SchedulesOptions): GraphqlModule {
  const pause =
    (paused: boolean) =>
    async (
      _: unknown,
      args: { readonly id?: Maybe<string> },
      { caller, address }: GraphqlContext,
    ): Promise<ScheduleView> => {
      const id = given(args.id, 'id');
      const tenants = requireChanger(caller);
      if (!isRunId(id))
        throw new NotFound(
          `There is no schedule '${id.slice(0, 100)}': that is not the form of an id; \`penstock schedule ls\` (or \`schedules\`) lists them.`,
        );
      const { schedule } = await owners.pauseSchedule({ id, tenants, paused });
      const action = paused ? 'schedule.pause' : 'schedule.resume';
      audit.record({ at: now(), actor: actorOf(caller), action, target: id, outcome: 'ok', ip: address });
      return schedule;
    };
  return {
    sdl: SDL,
    resolvers: {
      Query: {
        schedules: async (_: unknown, _args: unknown, { caller }: GraphqlContext): Promise<readonly ScheduleView[]> => {
          requireCredential(caller);
          const tenants = requireOwnRuns(caller);
          const lists = await Promise.all(
            partitionsOf(tenants, owners.partitions).map((partition) => listed(owners, partition, tenants)),
          );
          return lists.flat().toSorted(byRepository).slice(0, LISTED_MAX);
        },
      },
      Mutation: { pauseSchedule: pause(true), resumeSchedule: pause(false) },
    },
  };
}

/** A user's runs share one key; those of the server have one for each repository. */
function partitionsOf(tenants: readonly string[], partitions: number): readonly number[] {
  if (tenants.includes(SERVICE_TENANT)) return Array.from({ length: partitions }, (_, partition) => partition);
  return [...new Set(tenants.map((tenant) => partitionOfKey(tenant, partitions)))];
}

async function listed(owners: Owners, partition: number, tenants: readonly string[]): Promise<ScheduleView[]> {
  const found: ScheduleView[] = [];
  for (let after: string | undefined; found.length < LISTED_MAX; after = found.at(-1)?.id) {
    const { schedules, more } = await owners.schedules(partition, { tenants, after });
    found.push(...schedules);
    if (!more || schedules.length === 0) break;
  }
  return found;
}

function byRepository(a: ScheduleView, b: ScheduleView): number {
  const [left, right] = [a, b].map(({ provider, repository, cron, id }) =>
    JSON.stringify([provider, repository, cron, id]),
  );
  return (left ?? '') < (right ?? '') ? -1 : 1;
}
