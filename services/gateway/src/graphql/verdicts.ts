/** What a run that has ended says about its code: `verdict`, and what it rests on. */
import { judge, withEarlierFailure, type Judgement, type RunView } from '@penstock/run';
import type { RunReads } from '@penstock/run-client';
import type { GraphqlContext } from './arguments.ts';
import type { GraphqlModule } from './graphql-module.ts';

const SDL = /* GraphQL */ `
  extend type PipelineRun {
    """
    By precedence 'cancelled', 'interrupted' (a runner was lost), 'infrastructure' (no runner, no checkout, no image), 'failed', 'flaky'
    (passed after a retry of its own failure, or where an earlier run of the same repository, commit, file, inputs and trust failed) or 'passed'; null while it
    runs (additional).
    """
    verdict: String
    "What the verdict rests on, in sentences for a person (additional)."
    verdictEvidence: [String!]!
  }
`;

/** The fields for which a run's stages are read, and perhaps other runs of its commit. */
export const VERDICT_FIELDS = ['verdict', 'verdictEvidence'] as const;

export function verdictsModule({ reads }: { readonly reads: RunReads }): GraphqlModule {
  /** Both fields of a run are answered by one reading. */
  const judgements = new WeakMap<RunView, Promise<Judgement | null>>();
  const judged = (run: RunView, { work }: GraphqlContext): Promise<Judgement | null> => {
    let known = judgements.get(run);
    if (known === undefined) judgements.set(run, (known = work.read(() => judgeAmongOthers(run, reads))));
    return known;
  };
  return {
    sdl: SDL,
    resolvers: {
      PipelineRun: {
        verdict: async (run: RunView, _: unknown, context: GraphqlContext) =>
          (await judged(run, context))?.verdict ?? null,
        verdictEvidence: async (run: RunView, _: unknown, context: GraphqlContext) =>
          (await judged(run, context))?.evidence ?? [],
      },
    },
  };
}

async function judgeAmongOthers(run: RunView, reads: RunReads): Promise<Judgement | null> {
  const judgement = judge(run);
  if (judgement === null || (judgement.verdict !== 'passed' && judgement.verdict !== 'flaky')) return judgement;
  const earlier = await reads.earlierFailure(run);
  return earlier === null ? judgement : withEarlierFailure(judgement, earlier);
}
