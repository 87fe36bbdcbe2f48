/** Everything that the dashboard asks of the API; `test/operations.test.ts` holds it to the schema and makes its types from it. */

const runRow = 'id pipelineName status startedAt finishedAt verdict trigger actor repository ref commit';
const waiting = 'waitingOn { kind holder position since etaSecs message }';

export const documents = {
  Runs: `query Runs($limit: Int, $before: String, $pipelineName: String, $status: RunStatus, $repository: String, $ref: String) {
    runs(limit: $limit, before: $before, pipelineName: $pipelineName, status: $status, repository: $repository, ref: $ref) { ${runRow} }
  }`,
  RunRow: `query RunRow($id: String) { run(id: $id) { ${runRow} } }`,
  Run: `query Run($id: String, $atVersion: Int) {
    run(id: $id, atVersion: $atVersion) {
      ${runRow} outcome reason source trusted provider verdictEvidence parentRunId rootRunId children
      inputs { key value }
      tick { cron at missed }
      ${waiting}
      stages {
        name after status startedAt finishedAt reason attempt exitCode adopted
        gate { approvers quorum preventSelf dueAt message }
        approvals { by decision comment at }
        tests { total passed failed skipped }
        ${waiting}
      }
    }
  }`,
  Cancel: `mutation Cancel($id: String) { cancelPipeline(id: $id) { cancelledStages } }`,
  Rerun: `mutation Rerun($id: String, $from: [String!], $onlyFailed: Boolean) {
    rerunPipeline(id: $id, from: $from, onlyFailed: $onlyFailed, waitSeconds: 0) { run { id } }
  }`,
  ApproveRun: `mutation ApproveRun($id: String) { approveRun(id: $id) { id } }`,
  ApproveStage: `mutation ApproveStage($runId: String, $stage: String, $comment: String) {
    approveStage(runId: $runId, stage: $stage, comment: $comment) { name }
  }`,
  RejectStage: `mutation RejectStage($runId: String, $stage: String, $comment: String) {
    rejectStage(runId: $runId, stage: $stage, comment: $comment) { name }
  }`,
} as const;
