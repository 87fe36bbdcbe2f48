/** What people bring from GitHub Actions, GitLab CI, Woodpecker and Buildkite, and where that is said in a pipeline file. */

const TRIGGERS = "which pushes start the pipeline is decided by 'on.push' at the top";
const SHARED = "YAML's anchors share values between stages: '&name' before one, '*name' in its place";
const PUT_INTO_RUN = "put it into 'run', which takes a list of commands";
const UNDER_STAGES = "stages stand under 'stages', each with a name and a 'run'";
const ENVIRONMENT = "variables stand under 'env'; there are no environments to deploy to";

type Hints = ReadonlyMap<string, string>;

const TOP: Hints = new Map([
  ['steps', UNDER_STAGES],
  ['when', TRIGGERS.replace(' at the top', '')],
  ['only', TRIGGERS.replace(' at the top', '')],
  ['rules', TRIGGERS.replace(' at the top', '')],
  ['workflow', TRIGGERS.replace(' at the top', '')],
  ['triggers', "did you mean 'on'?"],
  ['trigger', "did you mean 'on'?"],
  ['push', "it stands under 'on'"],
  ['pull_request', "it stands under 'on'"],
  ['branches', "it stands under 'on.push'"],
  ['tags', "it stands under 'on.push'"],
  ['paths', "it stands under 'on.push'"],
  ['environment', ENVIRONMENT],
  ['before_script', "write it into the 'run' of each stage"],
  ['after_script', "a stage with 'when: always()' runs after all others"],
  ['include', 'a pipeline is one file; what several share can be an extension'],
  ['default', SHARED],
  ['defaults', SHARED],
  ['permissions', 'a run has no rights of its own; leave it out'],
  ['clone', 'the repository is checked out before the first stage; leave it out'],
  ['workspace', "it stands in a stage, as 'shared' or 'fresh'"],
  ['agents', "labels of runners stand in each stage, as 'runs_on'"],
  ['labels', "labels of runners stand in each stage, as 'runs_on'"],
  ['matrix', 'it stands in a stage'],
  ['image', 'it stands in each stage that runs in a container'],
  ['container', "it stands in each stage that runs in a container, as 'image'"],
  ['services', 'they stand in the stage that needs them'],
  ['resources', 'they stand in each stage'],
  ['secrets', 'they stand in each stage, which gets those that it names'],
  ['notify', "a stage with 'when: always()' and 'uses: notify/webhook@^1' tells of the end"],
]);

const STAGE: Hints = new Map([
  ['only', TRIGGERS],
  ['except', TRIGGERS],
  ['branches', TRIGGERS],
  ['rules', `a condition is written as 'when'; ${TRIGGERS}`],
  ['trigger', TRIGGERS],
  ['tags', "labels of a runner are 'runs_on'; tags of a push are 'on.push.tags' at the top"],
  ['stage', "'after' names the stages that come first"],
  ['wait', "'after' names the stages that come first"],
  ['extends', SHARED],
  ['before_script', PUT_INTO_RUN],
  ['after_script', "a stage with 'when: always()' that comes after this one runs also when it fails"],
  ['interruptible', "'concurrency' with 'cancel_in_progress' at the top ends older runs"],
  ['resource_group', "'concurrency' at the top lets runs go one at a time"],
  ['concurrency', "it stands at the top: runs of a group go one at a time; 'max_parallel' bounds a 'matrix'"],
  ['plugins', "did you mean 'uses'?"],
  ['environment', ENVIRONMENT],
  ['label', "a stage is named by its key under 'stages'"],
  ['key', "a stage is named by its key under 'stages'"],
  ['name', "a stage is named by its key under 'stages'"],
  ['permissions', 'a run has no rights of its own; leave it out'],
  ['block', 'approvals are not supported yet'],
  ['input', 'approvals are not supported yet'],
  ['manual', 'approvals are not supported yet'],
]);

const ON: Hints = new Map([
  ['pull_request_target', "did you mean 'pull_request'? The file is that of the pull request's head"],
  ['merge_request', "did you mean 'pull_request'?"],
  ['merge_requests', "did you mean 'pull_request'?"],
  ['schedule', 'it stands at the top of the file'],
  ['workflow_dispatch', "every pipeline can be started by 'penstock trigger'; leave it out"],
  ['workflow_call', 'what pipelines share can be an extension'],
  ['tag', "tags stand under 'push', as 'tags'"],
  ['tags', "it stands under 'push'"],
  ['branches', "it stands under 'push'"],
  ['paths', "it stands under 'push'"],
  ['release', "tags stand under 'push', as 'tags'"],
]);

const PULL_REQUEST: Hints = new Map([
  ['branch', "did you mean 'branches'?"],
  ['branches-ignore', "begin a pattern of 'branches' with '!' to take it out again"],
  ['paths-ignore', "begin a pattern of 'paths' with '!' to take it out again"],
  ['labels', "a stage's 'when' cannot read labels; 'types' may name 'labeled'"],
]);

const PUSH: Hints = new Map([
  ['branch', "did you mean 'branches'?"],
  ['only', "did you mean 'branches'?"],
  ['except', "did you mean 'branches-ignore'?"],
  ['ignore', "did you mean 'branches-ignore'?"],
]);

/** What to write instead of a key that a list of ours does not hold. */
export function keyHint(key: string, allowed: readonly string[]): string | undefined {
  return hintsBeside(allowed)?.get(key);
}

function hintsBeside(allowed: readonly string[]): Hints | undefined {
  if (allowed.includes('after')) return STAGE;
  if (allowed.includes('concurrency')) return TOP;
  if (allowed.includes('push')) return ON;
  if (allowed.includes('cancel_superseded')) return PULL_REQUEST;
  return allowed.includes('branches') ? PUSH : undefined;
}

const PUSHED = 'what was pushed is in $SERVICE_REF and $SERVICE_COMMIT, for a script';
const PUBLISHED = 'what an earlier stage publishes is stages.NAME.outputs.OUTPUT';
const PARAMETERS = "a pipeline has no parameters; values stand under 'env'";

const NAMES: Hints = new Map([
  ['secrets', "a stage gets a secret as a variable, by its key 'secrets', and no expression can read one"],
  ['vars', "did you mean 'env'?"],
  ['variables', "did you mean 'env'?"],
  ['params', PARAMETERS],
  ['parameters', PARAMETERS],
  ['branch', `${PUSHED}; ${TRIGGERS}`],
  ['ref', PUSHED],
  ['tag', `${PUSHED}; ${TRIGGERS}`],
  ['commit', PUSHED],
  ['event', TRIGGERS],
  ['github', PUSHED],
  ['gitlab', PUSHED],
  ['git', PUSHED],
  ['ci', PUSHED],
  ['build', PUSHED],
  ['needs', PUBLISHED],
  ['steps', PUBLISHED],
  ['jobs', PUBLISHED],
  ['job', PUBLISHED],
  ['runner', "labels of a runner are 'runs_on'"],
]);

/** What to write instead of a name in an expression that we do not know. */
export function nameHint(name: string): string | undefined {
  return NAMES.get(name) ?? (/^(CI|GITHUB|GITLAB|BUILDKITE)_/.test(name) ? PUSHED : undefined);
}
