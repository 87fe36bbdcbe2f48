/** How the tests of a run went. */
import { TEST_STATUSES, type TestStatus } from '@penstock/artifacts';
import { BadUserInput } from '@penstock/errors';
import { requireReader } from '@penstock/identity';
import type { RunView, StageView } from '@penstock/run';
import type { RunReads } from '@penstock/run-client';
import type { KeptFiles } from '../artifacts/kept-files.ts';
import { testCasesOf } from '../artifacts/test-cases.ts';
import { given, limitOf, type GraphqlContext, type Maybe } from './arguments.ts';
import type { GraphqlModule } from './graphql-module.ts';

export interface TestReportsOptions {
  readonly reads: RunReads;
  readonly kept: KeptFiles;
}

interface CasesArguments {
  readonly stage?: Maybe<string>;
  readonly status?: Maybe<string>;
  readonly query?: Maybe<string>;
  readonly first?: Maybe<number>;
  readonly after?: Maybe<string>;
}

interface Counts {
  readonly total: number;
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
  readonly durationSecs: number;
}

const CASES_LIMIT = { default: 100, max: 1_000 } as const;
const QUERY_LENGTH_MAX = 200;

const SDL = /* GraphQL */ `
  "How the tests of a stage went (additional)."
  type TestCounts {
    total: Int!
    passed: Int!
    failed: Int!
    skipped: Int!
    "Of all tests together."
    durationSecs: Float!
  }

  "How one test went."
  type TestCase {
    stage: String!
    "Of the suite that holds it, else of its class."
    suite: String!
    "Where its file says one (additional)."
    className: String
    name: String!
    "passed, failed or skipped"
    status: String!
    durationSecs: Float!
    "Why it failed or was skipped, where its file says so; at most 2,000 characters."
    message: String
    "The argument 'after' that goes on behind it (additional)."
    cursor: String!
  }

  "How the tests of a run went, as the files say that its stages name under 'reports'."
  type TestReport {
    total: Int!
    passed: Int!
    failed: Int!
    skipped: Int!
    durationSecs: Float!
    """
    The tests, by stages in the order of the file: those of one 'status' (passed, failed, skipped), with 'query' in the name of the
    suite, class or test, of one 'stage'. 'first' is 100 where it is absent, at most 1,000; 'after' is the 'cursor' of a test. The tests
    of a report that has expired are only counted.
    """
    cases(status: String, query: String, first: Int, after: String, stage: String): [TestCase!]!
  }

  extend type StageRun {
    "Null where no file said how its tests went (additional)."
    tests: TestCounts
  }

  extend type Query {
    "Null: there is no such run for this caller. Zeros: none of its stages has told of tests."
    testReport(runId: String): TestReport
  }
`;

export function testReportsModule({ reads, kept }: TestReportsOptions): GraphqlModule {
  return {
    sdl: SDL,
    resolvers: {
      Query: {
        testReport: async (_: unknown, args: { runId?: Maybe<string> }, { caller }: GraphqlContext) => {
          const run = await reads.view(given(args.runId, 'runId'), requireReader(caller));
          return run === null ? null : { run, ...sumOf(run.stages) };
        },
      },
      TestReport: {
        cases: ({ run }: { readonly run: RunView }, args: CasesArguments, { work }: GraphqlContext) => {
          const query = args.query ?? '';
          if (query.length > QUERY_LENGTH_MAX)
            throw new BadUserInput(`'query' has more than ${QUERY_LENGTH_MAX} characters.`);
          const wanted = {
            stage: args.stage ?? undefined,
            status: statusOf(args.status),
            query,
            first: limitOf(args.first, CASES_LIMIT, 'first'),
            after: args.after ?? undefined,
            pause: work.look,
          };
          return work.read(() => testCasesOf(run, kept, wanted));
        },
      },
      StageRun: {
        tests: ({ report }: StageView) => (report === undefined ? null : countsOf(report)),
      },
    },
  };
}

function statusOf(status: Maybe<string>): TestStatus | undefined {
  if (status == null) return undefined;
  const known = TEST_STATUSES.find((each) => each === status.toLowerCase());
  if (known === undefined) throw new BadUserInput(`'status' must be ${TEST_STATUSES.join(', ')}.`);
  return known;
}

function countsOf({ total, failed, skipped, durationMs }: NonNullable<StageView['report']>): Counts {
  return { total, passed: total - failed - skipped, failed, skipped, durationSecs: durationMs / 1000 };
}

function sumOf(stages: readonly StageView[]): Counts {
  const sum = { total: 0, failed: 0, skipped: 0, durationMs: 0 };
  for (const { report } of stages) {
    sum.total += report?.total ?? 0;
    sum.failed += report?.failed ?? 0;
    sum.skipped += report?.skipped ?? 0;
    sum.durationMs += report?.durationMs ?? 0;
  }
  const { total, failed, skipped, durationMs } = sum;
  return { total, passed: total - failed - skipped, failed, skipped, durationSecs: durationMs / 1000 };
}
