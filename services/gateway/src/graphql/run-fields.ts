/** Which documents ask for nothing but runs as they are committed, so that their answers may be kept until a commit changes one. */
import type { DocumentNode } from 'graphql';
import { OperationTypeNode, visit } from './library.ts';
import { readsHistory } from './list-cost.ts';

/** A field that is not named here is answered anew each time: verdicts, artifacts and tests come from elsewhere too. */
const FIELDS: ReadonlySet<string> = new Set([
  ...['__typename', 'health', 'version', 'run', 'runs', 'pipelineHealth'],
  ...['id', 'pipelineName', 'status', 'stages', 'startedAt', 'finishedAt', 'outcome', 'reason', 'source', 'trigger'],
  ...['trusted', 'actor', 'provider', 'repository', 'ref', 'commit', 'inputs', 'name', 'after', 'outputs', 'attempt'],
  ...['exitCode', 'key', 'value', 'totalRuns', 'succeeded', 'failed', 'interrupted', 'successRate', 'flakyStages'],
  ...['failures', 'avgDurationSecs', 'flaky', 'tick', 'cron', 'at', 'missed', 'parentRunId', 'rootRunId', 'adopted'],
]);

const OF_RUNS: ReadonlySet<string> = new Set(['run', 'runs', 'pipelineHealth']);

export function readsOnlyRuns(document: DocumentNode): boolean {
  let [all, some] = [true, false];
  visit(document, {
    OperationDefinition: ({ operation }) => {
      all &&= operation === OperationTypeNode.QUERY;
    },
    Field: (field) => {
      all &&= FIELDS.has(field.name.value) && !readsHistory(field);
      some ||= OF_RUNS.has(field.name.value);
    },
  });
  return all && some;
}
