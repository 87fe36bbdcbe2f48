/**
 * What people bring from GitHub Actions, GitLab CI, Woodpecker, Buildkite, Azure Pipelines and CircleCI, and where that is said in a
 * pipeline file. Keys stand here by their normal form.
 */
import { normalForm, otherName, STAGE_KEYS, TOP_KEYS } from './vocabulary.ts';

const TRIGGERS = "which pushes start the pipeline is decided by 'on.push' at the top";
const SHARED = "YAML's anchors share values between stages: '&name' before one, '*name' in its place";
const PUT_INTO_RUN = "put it into 'run', which takes a list of commands";
const UNDER_STAGES = "stages stand under 'stages', each with a name and a 'run'";
const CHECKED_OUT = 'the repository is checked out before the first stage; leave it out';
const EXTENSIONS = "a stage names the extension that it uses, as 'uses'";
const APPROVAL = "a stage with 'approval' and no 'run' waits for a person";
const NAMED_BY_KEY = "a stage is named by its key under 'stages'";
const HANDED_ON = "'artifacts' keeps files, and stages after this one have them";
const WITH_SHELL = "put it into 'run', and name the program as 'shell'";
const ONE_PIPELINE = 'a file is one pipeline; leave it out';
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
  ['pr', "it stands under 'on', as 'pull_request'"],
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
  ['clone', CHECKED_OUT],
  ['checkout', CHECKED_OUT],
  ['workspace', "it stands in a stage, as 'shared' or 'fresh'"],
  ['agents', "labels of runners stand in each stage, as 'runs_on'"],
  ['labels', "labels of runners stand in each stage, as 'runs_on'"],
  ['image', 'it stands in each stage that runs in a container'],
  ['container', "it stands in each stage that runs in a container, as 'image'"],
  ['services', 'they stand in the stage that needs them'],
  ['resources', 'they stand in each stage'],
  ['secrets', 'they stand in each stage, which gets those that it names'],
  ['version', ONE_PIPELINE],
  ['kind', ONE_PIPELINE],
  ['type', ONE_PIPELINE],
  ['workflows', UNDER_STAGES],
  ['orbs', EXTENSIONS],
  ['plugins', EXTENSIONS],
  ['group', "it stands in 'concurrency'"],
  ['cancel_in_progress', "it stands in 'concurrency'"],
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
  ['label', NAMED_BY_KEY],
  ['key', NAMED_BY_KEY],
  ['name', NAMED_BY_KEY],
  ['id', NAMED_BY_KEY],
  ['job', NAMED_BY_KEY],
  ['display_name', NAMED_BY_KEY],
  ['permissions', 'a run has no rights of its own; leave it out'],
  ['block', APPROVAL],
  ['input', APPROVAL],
  ['manual', APPROVAL],
  ['checkout', CHECKED_OUT],
  ['clone', CHECKED_OUT],
  ['bash', WITH_SHELL],
  ['powershell', WITH_SHELL],
  ['pwsh', WITH_SHELL],
  ['concurrency_group', "'concurrency' at the top lets runs go one at a time"],
  ['persist_to_workspace', HANDED_ON],
  ['attach_workspace', HANDED_ON],
  ['volumes', "a stage has the folder of its run; what the next run is to find is 'cache'"],
  ['privileged', 'no stage is privileged; leave it out'],
  ['detach', "what runs beside a stage stands under 'services'"],
  ['skip', "'when' says whether a stage runs"],
  ['start_in', `nothing delays a stage; ${APPROVAL}`],
  ['coverage', "a command of 'run' can print it; leave it out"],
  ['inherit', "a stage has what stands in it, and the 'env' of the top; leave it out"],
  ['pages', PUT_INTO_RUN],
  ['release', PUT_INTO_RUN],
  ['entrypoint', "it stands in 'image'"],
  ['user', "it stands in 'image'"],
  ['pull', "it stands in 'image'"],
  ['cpu', "it stands in 'resources'"],
  ['memory', "it stands in 'resources'"],
  ['include', "it stands in 'matrix'"],
  ['exclude', "it stands in 'matrix'"],
  ['fail_fast', "it stands in 'matrix'"],
  ['cancel_in_progress', "it stands in 'concurrency' at the top of the file"],
  ['max_parallel', "it stands in 'matrix'"],
  ['backoff', "it stands in 'retry'"],
  ['delay', "it stands in 'retry'"],
  ['approvers', "it stands in 'approval'"],
  ['expire', "it stands in 'artifacts'"],
  ['junit', "it stands in 'reports'"],
]);

const SERVICE: Hints = new Map([
  ['ports', 'a stage reaches a service by its name, at any port; leave it out'],
  ['name', "a service is named by its key under 'services'"],
  ['alias', "a service is named by its key under 'services'"],
  ['volumes', 'a service has the files of its image; leave it out'],
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
  ['branches_ignore', "begin a pattern of 'branches' with '!' to take it out again"],
  ['paths_ignore', "begin a pattern of 'paths' with '!' to take it out again"],
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
  return hintsBeside(allowed)?.get(normalForm(key));
}

/** Where a key stands that is known at the top of a file, or in a stage, but not here. */
export function placeHint(key: string, allowed: readonly string[]): string | undefined {
  if (allowed === TOP_KEYS) return placed(key, STAGE_KEYS, 'it stands in a stage');
  return allowed === STAGE_KEYS ? placed(key, TOP_KEYS, 'it stands at the top of the file') : undefined;
}

function placed(key: string, there: readonly string[], where: string): string | undefined {
  const name = otherName(key, there);
  if (name === undefined) return undefined;
  return name === key ? where : `${where}, as '${name}'`;
}

function hintsBeside(allowed: readonly string[]): Hints | undefined {
  if (allowed.includes('after')) return STAGE;
  if (allowed.includes('concurrency')) return TOP;
  if (allowed.includes('push')) return ON;
  if (allowed.includes('cancel_superseded')) return PULL_REQUEST;
  if (allowed.includes('ready')) return SERVICE;
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
