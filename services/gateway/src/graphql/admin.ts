/** What operators see and do: how the installation stands, what is paused, who did what. */
import type { Bus, Control, ControlTarget, SchedulerStatus } from '@penstock/bus';
import { BadUserInput, NotFound } from '@penstock/errors';
import { actorOf, requireAdministrator } from '@penstock/identity';
import { isoTime } from '@penstock/run';
import type { AuditLog } from '@penstock/store';
import { clusterStatus, type ClusterStatus } from '../admin/cluster-status.ts';
import { ControlDesk } from '../admin/controls.ts';
import { given, type GraphqlContext, type Maybe } from './arguments.ts';
import type { GraphqlModule } from './graphql-module.ts';

export interface AdminModuleOptions {
  readonly bus: Bus;
  readonly audit: AuditLog;
  /** Milliseconds since 1970. */
  readonly now: () => number;
}

const REASON_LENGTH_MAX = 200;
const NAME_LENGTH_MAX = 500;

const SDL = /* GraphQL */ `
  "A scheduler: a member that owns partitions (additional)."
  type AdminScheduler {
    id: String!
    "Whether it answered; of one that did not nothing else is known."
    answers: Boolean!
    "Why it cannot commit at present; null: it can."
    trouble: String
    "Of the journal's room, 0 to 1."
    journalUsed: Float!
    "False: it has not heard for some seconds what is paused, and so hands nothing to runners."
    knowsPauses: Boolean!
    partitions: [AdminPartition!]!
  }

  "A part of the runs, which one scheduler owns (additional)."
  type AdminPartition {
    number: Int!
    "False: its owner is taking it over."
    isOpen: Boolean!
    "Runs that go on and are in memory."
    runs: Int!
    "Runs that wait outside of memory."
    parked: Int!
    "How far the store is behind what was decided."
    lagSecs: Float!
  }

  "A runner, as its lease says (additional)."
  type AdminRunner {
    id: String!
    "Of its process; a new one at each start."
    session: String!
    labels: [String!]!
    slots: Int!
    "Slots in use, results on their way included."
    busy: Int!
    "It gets nothing but stages of runs whose working folder it has."
    isDrained: Boolean!
    "Whose runs alone it gets stages of; null: everybody's."
    tenant: String
  }

  "Stages of one owner that wait for runners with the same labels (additional)."
  type AdminQueue {
    labels: [String!]!
    "Whose they are: what turns and quotas are counted by."
    key: String!
    stages: Int!
    "Since when the first of them waits; null: nobody knows."
    since: String
    isPaused: Boolean!
  }

  "What is held up (additional)."
  type AdminPause {
    "all, key, label, or runner: a drain"
    kind: String!
    "The key, the label or the runner; null: everything."
    name: String
    since: String!
    "Who did it, as the audit log names them."
    by: String!
    reason: String
  }

  "(additional)"
  type AdminStatus {
    schedulers: [AdminScheduler!]!
    runners: [AdminRunner!]!
    "The longest first."
    queues: [AdminQueue!]!
    pauses: [AdminPause!]!
    "There are more runners or queues than are told."
    isCut: Boolean!
  }

  extend type Query {
    "How the installation stands. For administrators, the administration key, and in development mode the API key (additional)."
    adminStatus: AdminStatus!
    "The runners of it alone. For the same (additional)."
    adminRunners: [AdminRunner!]!
  }

  extend type Mutation {
    """
    Hands no stage to a runner any more: none at all, or none of that key, or none that asks for that label. What runs goes on, what
    waits stays. Answers all that is held up. For those of adminStatus (additional).
    """
    adminPause(key: String, label: String, reason: String): [AdminPause!]!
    "Takes such a pause back; without arguments the pause of everything. Answers all that is held up still (additional)."
    adminResume(key: String, label: String): [AdminPause!]!
    "Hands the runner nothing but stages of runs whose working folder it has; 'undo' takes that back (additional)."
    adminDrain(runner: String, reason: String, undo: Boolean): [AdminPause!]!
  }
`;

interface PauseArguments {
  readonly key?: Maybe<string>;
  readonly label?: Maybe<string>;
  readonly reason?: Maybe<string>;
}

interface DrainArguments {
  readonly runner?: Maybe<string>;
  readonly reason?: Maybe<string>;
  readonly undo?: Maybe<boolean>;
}

export function adminModule({ bus, audit, now }: AdminModuleOptions): GraphqlModule {
  const desk = new ControlDesk({ bus, now });
  const record = ({ caller, address }: GraphqlContext, action: string, target: ControlTarget): void =>
    audit.record({ at: now(), actor: actorOf(caller), action, target: nameOf(target), outcome: 'ok', ip: address });
  const holdUp = async (context: GraphqlContext, action: string, target: ControlTarget, reason: Maybe<string>) => {
    await desk.holdUp(target, actorOf(context.caller), reasonOf(reason));
    record(context, action, target);
    return (await desk.standing()).map(pauseShown);
  };
  const letGo = async (context: GraphqlContext, action: string, target: ControlTarget) => {
    const wasHeldUp = await desk.letGo(target, actorOf(context.caller));
    if (!wasHeldUp) throw new NotFound(`${nameOf(target)} is not held up: adminStatus says what is.`);
    record(context, action, target);
    return (await desk.standing()).map(pauseShown);
  };
  return {
    sdl: SDL,
    resolvers: {
      Query: {
        adminStatus: async (_: unknown, _args: unknown, { caller }: GraphqlContext) => {
          requireAdministrator(caller);
          const [status, pauses] = await Promise.all([clusterStatus(bus), desk.standing()]);
          return {
            schedulers: schedulersOf(status),
            runners: runnersOf(status, pauses),
            queues: queuesOf(status),
            pauses: pauses.map(pauseShown),
            isCut: status.answered.some(({ isCut }) => isCut),
          };
        },
        adminRunners: async (_: unknown, _args: unknown, { caller }: GraphqlContext) => {
          requireAdministrator(caller);
          const [status, pauses] = await Promise.all([clusterStatus(bus), desk.standing()]);
          return runnersOf(status, pauses);
        },
      },
      Mutation: {
        adminPause: async (_: unknown, args: PauseArguments, context: GraphqlContext) => {
          requireAdministrator(context.caller);
          return await holdUp(context, 'admin.pause', pauseTarget(args), args.reason);
        },
        adminResume: async (_: unknown, args: PauseArguments, context: GraphqlContext) => {
          requireAdministrator(context.caller);
          return await letGo(context, 'admin.resume', pauseTarget(args));
        },
        adminDrain: async (_: unknown, args: DrainArguments, context: GraphqlContext) => {
          requireAdministrator(context.caller);
          const target = { kind: 'runner', runner: named(given(args.runner, 'runner'), 'runner') } as const;
          if (args.undo === true) return await letGo(context, 'admin.undrain', target);
          const status = await clusterStatus(bus);
          const isKnown = status.answered.some(({ runners }) => runners.some(({ runner }) => runner === target.runner));
          if (!isKnown && !status.answered.some(({ isCut }) => isCut))
            throw new NotFound(
              `No runner '${target.runner.slice(0, 100)}' is connected: adminRunners names those that are.`,
            );
          return await holdUp(context, 'admin.drain', target, args.reason);
        },
      },
    },
  };
}

function pauseTarget({ key, label }: PauseArguments): ControlTarget {
  if (key != null && label != null) throw new BadUserInput("Give 'key' or 'label', not both: pause twice for both.");
  if (key != null) return { kind: 'key', key: named(key, 'key') };
  return label == null ? { kind: 'all' } : { kind: 'label', label: named(label, 'label') };
}

function named(text: string, argument: string): string {
  if (text === '') throw new BadUserInput(`'${argument}' is empty.`);
  if (text.length > NAME_LENGTH_MAX)
    throw new BadUserInput(`'${argument}' has more than ${NAME_LENGTH_MAX} characters: nothing is called so.`);
  return text.toWellFormed();
}

/** It is shown to everybody whose stages wait. */
function reasonOf(reason: Maybe<string>): string | undefined {
  if (reason == null || reason.trim() === '') return undefined;
  if (reason.length > REASON_LENGTH_MAX)
    throw new BadUserInput(`'reason' has more than ${REASON_LENGTH_MAX} characters.`);
  return reason.trim().toWellFormed();
}

/** As in the audit log: the kind, and what it is about. */
function nameOf(target: ControlTarget): string {
  return [target.kind, subjectOf(target)].filter((text) => text !== null).join(' ');
}

function subjectOf(target: ControlTarget): string | null {
  if (target.kind === 'key') return target.key;
  if (target.kind === 'label') return target.label;
  return target.kind === 'runner' ? target.runner : null;
}

function pauseShown({ target, since, by, reason }: Control): object {
  return { kind: target.kind, name: subjectOf(target), since: isoTime(since), by, reason: reason ?? null };
}

function schedulersOf({ answered, silent }: ClusterStatus): object[] {
  return [
    ...answered.map(({ scheduler, trouble, journalUsed, knowsControls, partitions }) => ({
      id: scheduler,
      answers: true,
      trouble: trouble ?? null,
      journalUsed,
      knowsPauses: knowsControls,
      partitions: partitions
        .toSorted((a, b) => a.partition - b.partition)
        .map(({ partition, lagMs, ...rest }) => ({ ...rest, number: partition, lagSecs: lagMs / 1_000 })),
    })),
    ...silent.map((id) => ({ id, answers: false, trouble: null, journalUsed: 0, knowsPauses: false, partitions: [] })),
  ];
}

/** Every scheduler knows all of them; where one is behind, another may have seen a newer one. */
function runnersOf({ answered }: ClusterStatus, pauses: readonly Control[]): object[] {
  const drained = new Set(pauses.flatMap(({ target }) => (target.kind === 'runner' ? [target.runner] : [])));
  const known = new Map<string, SchedulerStatus['runners'][number]>();
  for (const { runners } of answered) for (const runner of runners) known.set(runner.session, runner);
  return [...known.values()]
    .toSorted((a, b) => (a.runner < b.runner ? -1 : 1))
    .map(({ runner, ...rest }) => ({ ...rest, id: runner, isDrained: drained.has(runner) }));
}

function queuesOf({ answered }: ClusterStatus): object[] {
  return answered
    .flatMap(({ queues }) => queues)
    .toSorted((a, b) => b.count - a.count)
    .map(({ count, since, ...rest }) => ({
      ...rest,
      stages: count,
      since: since === undefined ? null : isoTime(since),
    }));
}
