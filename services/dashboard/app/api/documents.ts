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
      ${runRow} version outcome reason source trusted provider verdictEvidence parentRunId rootRunId children
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
  RunMoment: `query RunMoment($id: String, $atVersion: Int, $after: Int) {
    run(id: $id, atVersion: $atVersion) {
      status finishedAt
      stages {
        name after status startedAt finishedAt reason attempt exitCode adopted
        gate { approvers quorum preventSelf dueAt message }
        approvals { by decision comment at }
        tests { total passed failed skipped }
        waitingOn { kind holder position since etaSecs message }
      }
    }
    runEvents(id: $id, after: $after, limit: 1) { at stage summary }
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
  StageMore: `query StageMore($id: String, $after: String) {
    run(id: $id) {
      stages(first: 1, after: $after) {
        name
        outputs { key value }
        attempts { number runner status reason exitCode startedAt finishedAt queuedMs logBytes }
      }
    }
  }`,
  Artifacts: `query Artifacts($runId: String) { artifacts(runId: $runId) { stage key value sizeBytes expiresAt } }`,
  StreamTicket: `mutation StreamTicket($runId: String) { createStreamTicket(runId: $runId) }`,
  TestReport: `query TestReport($runId: String, $status: String, $query: String, $after: String) {
    testReport(runId: $runId) {
      total passed failed skipped durationSecs
      cases(status: $status, query: $query, first: 100, after: $after) { stage suite name status durationSecs message cursor }
    }
  }`,
  RunEvents: `query RunEvents($id: String, $after: Int) {
    runEvents(id: $id, after: $after, limit: 200) { version type at stage attempt summary }
  }`,
  CompareRuns: `query CompareRuns($a: String, $b: String) {
    one: run(id: $a) { ${runRow} inputs { key value } }
    other: run(id: $b) { ${runRow} inputs { key value } }
    compareRuns(a: $a, b: $b) {
      stage change
      a { status startedAt finishedAt }
      b { status startedAt finishedAt }
    }
  }`,
  Health: `query Health($pipelineName: String) {
    pipelineHealth(pipelineName: $pipelineName, limit: 50) {
      totalRuns succeeded failed interrupted infrastructure flaky successRate p50DurationSecs p95DurationSecs
      stages { name runs failures avgDurationSecs p95DurationSecs flaky flakeRate }
    }
  }`,
  Schedules: `query Schedules {
    schedules { id provider repository cron inputs { key value } nextAt lastRunId paused }
  }`,
  PauseSchedule: `mutation PauseSchedule($id: String) { pauseSchedule(id: $id) { id } }`,
  ResumeSchedule: `mutation ResumeSchedule($id: String) { resumeSchedule(id: $id) { id } }`,
  Deliveries: `query Deliveries {
    webhookDeliveries(limit: 50) {
      id provider event repository ref commit receivedAt outcome runId pipelineName source verified replayOf
      error { code message }
      trace { step passed detail }
    }
  }`,
  ReplayDelivery: `mutation ReplayDelivery($id: String, $dryRun: Boolean) {
    replayWebhookDelivery(id: $id, dryRun: $dryRun) { outcome runId error { message } trace { step passed detail } }
  }`,
  Repositories: `query Repositories { repositories { id provider repository webhookUrl createdAt proved proof { ref } cloneSecret } }`,
  SetCloneSecret: `mutation SetCloneSecret($id: String, $name: String) { setCloneSecret(id: $id, name: $name) { id } }`,
  Account: `query Account {
    me { email tier isAdmin pipelineRunLimit maxConcurrent }
    usage { metric total limit percentage status periodStart periodEnd }
    apiTokens { id name scopes createdAt lastUsedAt }
    secrets { name repository pipeline refs updatedAt lastUsedAt }
  }`,
  CreateToken: `mutation CreateToken($name: String, $scopes: [String]) { createApiToken(name: $name, scopes: $scopes) { token } }`,
  RevokeToken: `mutation RevokeToken($id: String) { revokeApiToken(id: $id) }`,
  Hooks: `query Hooks { hooks { id url events repository createdAt active failingSince lastError } }`,
  HookDeliveries: `query HookDeliveries($id: String) {
    hookDeliveries(id: $id, limit: 50) {
      id event runId status attempts createdAt attemptedAt nextAttemptAt responseStatus responseMs error
    }
  }`,
  CreateHook: `mutation CreateHook($url: String, $events: [String!], $repository: String) {
    createHook(url: $url, events: $events, repository: $repository) { secret }
  }`,
  DeleteHook: `mutation DeleteHook($id: String) { deleteHook(id: $id) }`,
  RedeliverHook: `mutation RedeliverHook($id: String) { redeliverHook(id: $id) { status } }`,
  AdminStatus: `query AdminStatus {
    adminStatus {
      isCut
      schedulers { id answers trouble journalUsed knowsPauses partitions { number isOpen runs parked lagSecs } }
      runners { id session labels slots busy isDrained tenant }
      queues { labels key stages since isPaused }
      pauses { kind name since by reason }
    }
    serverConfig { version mode }
  }`,
  Pause: `mutation Pause($key: String, $label: String, $reason: String) {
    adminPause(key: $key, label: $label, reason: $reason) { kind }
  }`,
  Resume: `mutation Resume($key: String, $label: String) { adminResume(key: $key, label: $label) { kind } }`,
  Drain: `mutation Drain($runner: String, $reason: String, $undo: Boolean) {
    adminDrain(runner: $runner, reason: $reason, undo: $undo) { kind }
  }`,
  AuditLog: `query AuditLog($limit: Int) { auditLog(limit: $limit) { at actor action target outcome ip } }`,
  DeadLetters: `query DeadLetters($limit: Int) {
    adminDeadLetters(limit: $limit) { id tenant url event attempts endedAt error }
  }`,
  RedriveLetter: `mutation RedriveLetter($id: String) { adminRedrive(id: $id) }`,
  Suspended: `query Suspended { suspendedUsers { id login suspendedBy suspendedAt } }`,
  Suspend: `mutation Suspend($login: String) { suspendUser(login: $login) { id } }`,
  Unsuspend: `mutation Unsuspend($login: String) { unsuspendUser(login: $login) }`,
  Access: `query Access($repository: String) { access(repository: $repository) { login role grantedAt } }`,
  GrantAccess: `mutation GrantAccess($repository: String, $login: String, $role: String) {
    grantAccess(repository: $repository, login: $login, role: $role) { login }
  }`,
  RevokeAccess: `mutation RevokeAccess($repository: String, $login: String) {
    revokeAccess(repository: $repository, login: $login)
  }`,
  Shared: `query Shared { sharedRepositories { provider repository role tenant } }`,
  LeaveRepository: `mutation LeaveRepository($repository: String) { leaveRepository(repository: $repository) }`,
  RunnerTokens: `query RunnerTokens {
    runnerTokens { id name labels untrusted tenant createdAt expiresAt runners { id name admittedUntil } }
  }`,
  CreateRunnerToken: `mutation CreateRunnerToken($name: String, $labels: [String], $expires: String, $untrusted: Boolean) {
    createRunnerToken(name: $name, labels: $labels, expires: $expires, untrusted: $untrusted) { token }
  }`,
  RevokeRunnerToken: `mutation RevokeRunnerToken($id: String) { revokeRunnerToken(id: $id) }`,
  Extensions: `query Extensions($query: String, $category: String) {
    extensions(query: $query, category: $category, limit: 50) {
      id description category downloadCount updatedAt visibility latestVersion
    }
  }`,
  Extension: `query Extension($id: String) {
    extension(id: $id) { id description category downloadCount updatedAt visibility latestVersion }
    extensionVersions(extensionId: $id, limit: 20) { version packageHash sizeBytes readme changelog yanked publishedAt signed }
  }`,
  Validate: `query Validate($yaml: String) {
    validatePipeline(yaml: $yaml) { valid diagnostics { line column message suggestion } stages { name after } }
  }`,
  Trigger: `mutation Trigger($yaml: String, $inputs: [KeyValueInput!]) {
    triggerPipeline(yaml: $yaml, inputs: $inputs, waitSeconds: 0) { run { id } }
  }`,
} as const;
