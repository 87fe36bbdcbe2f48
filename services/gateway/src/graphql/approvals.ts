/** Gates: stages that wait for people, and what people say there. */
import { BadUserInput } from '@penstock/errors';
import { actorOf } from '@penstock/identity';
import { isoTime, type GateDecision, type GateView, type StageApproval, type StageView } from '@penstock/run';
import type { Owners, RunReads } from '@penstock/run-client';
import type { AuditLog } from '@penstock/store';
import { decideStage } from '../runs/decide.ts';
import { stagesOfRun } from './history.ts';
import type { People } from '../people/people.ts';
import { given, type GraphqlContext, type Maybe } from './arguments.ts';
import { audited, targetOf } from './audited.ts';
import type { GraphqlModule } from './graphql-module.ts';

export interface ApprovalsOptions {
  readonly owners: Owners;
  readonly reads: RunReads;
  readonly people: People;
  readonly audit: AuditLog;
  /** Milliseconds since 1970. */
  readonly now: () => number;
}

const COMMENT_MAX = 1_000;

const SDL = /* GraphQL */ `
  "What somebody has said at a stage that waits for approval (additional)."
  type StageApproval {
    "A login, an email address, or 'api-key'."
    by: String!
    "approved or rejected"
    decision: String!
    comment: String
    "ISO 8601 in UTC."
    at: String!
  }

  "A stage that waits for people (additional)."
  type StageGate {
    "Null: whoever may cancel the run."
    approvers: [String!]
    "How many different people have to approve."
    quorum: Int!
    "Whoever has begun the run does not count."
    preventSelf: Boolean!
    "Until when it waits, while it does."
    dueAt: String
    "What is asked, while it waits."
    message: String
  }

  extend type StageRun {
    "In the order in which they were decided (additional)."
    approvals: [StageApproval!]!
    "Null for a stage that waits for nobody (additional)."
    gate: StageGate
  }

  extend type Mutation {
    """
    Approves a stage that waits for it. Saying the same again changes nothing; FORBIDDEN for whoever is no approver, CONFLICT
    where it is decided, or does not wait yet, or the run has ended (additional).
    """
    approveStage(runId: String, stage: String, comment: String): StageRun!
    "The same for a rejection: one of them decides (additional)."
    rejectStage(runId: String, stage: String, comment: String): StageRun!
  }
`;

interface DecisionArgs {
  readonly runId?: Maybe<string>;
  readonly stage?: Maybe<string>;
  readonly comment?: Maybe<string>;
}

export function approvalsModule(options: ApprovalsOptions): GraphqlModule {
  const { audit, now } = options;
  const decide =
    (decision: GateDecision) =>
    async (_: unknown, args: DecisionArgs, { caller, address }: GraphqlContext): Promise<StageView> => {
      const [runId, stage] = [given(args.runId, 'runId'), given(args.stage, 'stage')];
      const comment = args.comment ?? undefined;
      if (comment !== undefined && comment.length > COMMENT_MAX)
        throw new BadUserInput(`'comment' is longer than ${COMMENT_MAX} characters.`);
      const target = targetOf(`${runId} ${stage}`);
      const action = decision === 'approved' ? 'stage.approve' : 'stage.reject';
      const { run, stage: decided } = await audited(
        decideStage(options, caller, decision, { runId, stage, comment }),
        (outcome) => audit.record({ at: now(), actor: actorOf(caller), action, target, outcome, ip: address }),
      );
      stagesOfRun(run, [decided]);
      return decided;
    };
  return {
    sdl: SDL,
    resolvers: {
      Mutation: { approveStage: decide('approved'), rejectStage: decide('rejected') },
      StageRun: {
        approvals: ({ approvals = [] }: StageView) =>
          approvals.map(({ by, decision, comment, at }: StageApproval) => ({ by, decision, comment, at: isoTime(at) })),
        gate: ({ gate }: StageView) => (gate === undefined ? null : shownGate(gate)),
      },
    },
  };
}

function shownGate({ approvers, quorum, preventSelf, dueAt, message }: GateView): object {
  return {
    approvers: approvers ?? null,
    quorum,
    preventSelf: preventSelf === true,
    dueAt: dueAt === undefined ? null : isoTime(dueAt),
    message: message ?? null,
  };
}
