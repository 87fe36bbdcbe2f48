/**
 * The GraphQL schema. Arguments are declared nullable so that `$id: String` and `$id: String!` both fit; what is
 * missing is refused by the resolvers as BAD_USER_INPUT. Fields beyond the specification are marked in their text.
 */
export const SCHEMA = /* GraphQL */ `
  enum RunStatus {
    PENDING
    QUEUED
    RUNNING
    SUCCESS
    FAILED
    SKIPPED
    CANCELLED
  }

  type KeyValue {
    key: String!
    value: String!
  }

  input KeyValueInput {
    key: String!
    value: String!
  }

  type PipelineDiagnostic {
    "From 1."
    line: Int!
    column: Int!
    message: String!
    "The remedy, where there is one."
    suggestion: String
  }

  "A stage that a file would run (additional)."
  type PlannedStage {
    name: String!
    "The stages that it comes after, a whole matrix by its name; null where the file has too many to tell."
    after: [String!]
  }

  type PipelineValidation {
    valid: Boolean!
    "Of a valid file: warnings, which hold nothing up."
    diagnostics: [PipelineDiagnostic!]!
    "What a valid file would run, every expansion of a matrix by itself; of any other none (additional)."
    stages: [PlannedStage!]!
  }

  type StageRun {
    name: String!
    "The stages that it comes after, a whole matrix by its name; null where the run has too many to tell (additional)."
    after: [String!]
    status: RunStatus!
    "ISO 8601 in UTC; null until the first attempt starts."
    startedAt: String
    finishedAt: String
    outputs: [KeyValue!]!
    "Why the stage failed, was skipped or cancelled (additional)."
    reason: String
    "The last attempt, from 1; 0 before the first (additional)."
    attempt: Int!
    "Of the last attempt's command, where it ended by itself (additional)."
    exitCode: Int
  }

  type PipelineRun {
    id: String!
    pipelineName: String!
    status: RunStatus!
    "In the order of the file, all of them; or 'first' of them, after the one named 'after' (arguments additional)."
    stages(first: Int, after: String): [StageRun!]!
    "When the run was accepted, ISO 8601 in UTC."
    startedAt: String!
    finishedAt: String
    "How many events the run is made of so far: up to where 'atVersion' goes (additional)."
    version: Int!
    "'interrupted' where a lost runner ended it, 'quarantined' where the engine could not go on (additional)."
    outcome: String
    "Why the run as a whole failed, where no stage says it (additional)."
    reason: String
    "Which file ran, of a run that came from a repository: its path there, 'server_template', or 'none' (additional)."
    source: String
    "What began it: 'push', 'pull_request', 'schedule' or 'api'; a repeated one has its first's (additional)."
    trigger: String!
    "False of a run that an unsigned delivery or a pull request from a fork began (additional)."
    trusted: Boolean!
    "Who began it: a login at the git host, an email address, or 'api-key' (additional)."
    actor: String
    "'git_host_a' or 'git_host_b', of a run that came from a repository (additional)."
    provider: String
    "The repository, ref and commit that it runs for (additional)."
    repository: String
    ref: String
    commit: String
    "A value for every input that the file declares, defaults included (additional)."
    inputs: [KeyValue!]!
  }

  type Artifact {
    stage: String!
    key: String!
    value: String!
    "Of a kept file (additional), a whole number; its value is where it is downloaded from."
    sizeBytes: String
    sha256: String
    "Until when it is kept, ISO 8601."
    expiresAt: String
  }

  type RunSummary {
    passed: Int!
    failed: Int!
    skipped: Int!
  }

  type TriggerResult {
    run: PipelineRun!
    "Of the stages so far."
    summary: RunSummary!
  }

  type CancelResult {
    run: PipelineRun!
    cancelledStages: Int!
  }

  type StageHealth {
    name: String!
    runs: Int!
    failures: Int!
    avgDurationSecs: Float!
    "It both succeeded and failed within the window, be it in attempts of one run. Any failure counts, that of a lost runner as well."
    flaky: Boolean!
    "In how many of its runs, 0 to 1, it failed and then passed in the same run, or in another of the same commit and definition. What the machinery did is left out (additional)."
    flakeRate: Float!
    "(additional)"
    p95DurationSecs: Float!
  }

  type PipelineHealth {
    pipelineName: String!
    totalRuns: Int!
    succeeded: Int!
    failed: Int!
    interrupted: Int!
    "With the verdict 'infrastructure'; they are among the failed (additional)."
    infrastructure: Int!
    "With the verdict 'flaky', as far as the window shows it; they are among the succeeded (additional)."
    flaky: Int!
    "From creation to end, of the runs that succeeded or failed (additional)."
    p50DurationSecs: Float!
    p95DurationSecs: Float!
    "Succeeded of all runs that have ended, 0 to 1."
    successRate: Float!
    flakyStages: [String!]!
    stages: [StageHealth!]!
  }

  type Query {
    "'ok'"
    health: String!
    "The engine's version."
    version: String!
    """
    The newest runs first; 'limit' is 20 where it is absent, at most 100. 'before' is the id of a run, and the page goes on behind
    it. 'ref' is a branch or a tag by its name, or a full ref (all but 'limit' additional).
    """
    runs(
      limit: Int
      before: String
      pipelineName: String
      status: RunStatus
      repository: String
      ref: String
    ): [PipelineRun!]!
    "Null: there is no such run for this caller. 'atVersion': as it stood after that many events (additional)."
    run(id: String, atVersion: Int): PipelineRun
    "Over the newest 'limit' runs of that name: 50 where it is absent, at most 500."
    pipelineHealth(pipelineName: String, limit: Int): PipelineHealth!
    "What a run has published: its stages' outputs. Either spelling of the argument. 'stage' (additional): of this stage alone."
    artifacts(run_id: String, runId: String, stage: String): [Artifact!]!
    "Checks a pipeline file without running it; nobody need be signed in where reading is public (additional)."
    validatePipeline(yaml: String, lock: [LockEntryInput!]): PipelineValidation!
  }

  type Mutation {
    """
    Runs the pipeline whose file is 'yaml'. Answers when the run ends, or after 'waitSeconds' (0 to 300) with the run as it
    then stands. The run starts without files of the client's: an empty workspace. 'runId' makes repeating safe after
    UNAVAILABLE: it is that error's extensions.runId, for the same 'yaml' and 'inputs'. 'priority', -1000 to 1000, is for the API key. 'lock' says which
    versions of extensions the file was locked to. 'inputs' are values for the inputs that the file declares.
    """
    triggerPipeline(
      yaml: String
      waitSeconds: Int
      runId: String
      priority: Int
      lock: [LockEntryInput!]
      inputs: [KeyValueInput!]
    ): TriggerResult!
    """
    Runs the file of a repository at a branch or tag, 'ref' by its name or in full: one that the user has connected and proved; with the
    API key one that the server takes pushes of. 'provider' is git_host_a or git_host_b. The rest as in triggerPipeline; repeated with
    the same 'runId' and 'inputs' it answers with the first one's run, wherever 'ref' has moved.
    """
    dispatchPipeline(
      provider: String
      repository: String
      ref: String
      inputs: [KeyValueInput!]
      waitSeconds: Int
      runId: String
    ): TriggerResult!
    "Only runs that are PENDING, QUEUED or RUNNING; answers with the run already CANCELLED."
    cancelPipeline(id: String): CancelResult!
    "Lets the run of a pull request from a fork go on, which waits for that; approving again changes nothing (additional)."
    approveRun(id: String): PipelineRun!
  }
`;
