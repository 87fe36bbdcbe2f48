/** What repositories want a server to start by itself (P28): the lines of their files, asked of the owners that fire them. */
import type { ScheduleView } from '@penstock/bus';
import { NotFound } from '@penstock/errors';
import { actorOf, requireChanger, requireCredential, requireOwnRuns } from '@penstock/identity';
import { isRunId } from '@penstock/run';
import type { Owners } from '@penstock/run-client';
import type { AuditLog } from '@penstock/store';
import { schedulesOf } from '../runs/schedules.ts';
import { given, type GraphqlContext, type Maybe } from './arguments.ts';
import type { GraphqlModule } from './graphql-module.ts';

export interface SchedulesOptions {
  readonly owners: Owners;
  readonly audit: AuditLog;
  /** Milliseconds since 1970. */
  readonly now: () => number;
}

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
          return await schedulesOf(owners, tenants);
        },
      },
      Mutation: { pauseSchedule: pause(true), resumeSchedule: pause(false) },
    },
  };
}
