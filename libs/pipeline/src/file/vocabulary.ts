/** The keys of a pipeline file: those that work, those that are known and not built yet, and what people write instead. */

export const TOP_KEYS = ['engine', 'pipeline', 'on', 'schedule', 'inputs', 'env', 'concurrency', 'stages'] as const;
export const PIPELINE_KEYS = ['name', 'description'] as const;
export const STAGE_KEYS = [
  'run',
  'uses',
  'with',
  'after',
  'when',
  'env',
  'timeout',
  'retry',
  'allow_failure',
  'workdir',
  'shell',
  'workspace',
  'runs_on',
  'outputs',
  'secrets',
  'id_token',
  'image',
  'services',
  'resources',
  'network',
  'matrix',
  'artifacts',
  'reports',
  'quarantine',
  'cache',
  'approval',
  'generates',
] as const;
export const GENERATES_KEYS = ['secrets', 'id_token'] as const;
/** Of a line of `schedule` that is a map. */
export const SCHEDULE_KEYS = ['cron', 'inputs'] as const;
export const QUARANTINE_KEYS = ['until', 'reason'] as const;
export const CACHE_KEYS = ['key', 'paths', 'restore'] as const;
export const APPROVAL_KEYS = ['approvers', 'quorum', 'timeout', 'prevent_self', 'message'] as const;
/** What can stand in a stage with `approval`, which runs nothing. */
export const BESIDE_APPROVAL: ReadonlySet<string> = new Set(['approval', 'after', 'when']);
export const ARTIFACTS_KEYS = ['paths', 'expire', 'when', 'required', 'from'] as const;
export const REPORTS_KEYS = ['junit'] as const;
/** Where a stage asks to run. */
export const PLACE_KEYS = ['image', 'services', 'resources', 'network'] as const;
export const IMAGE_KEYS = ['name', 'entrypoint', 'user', 'pull', 'auth'] as const;
export const SERVICE_KEYS = ['image', 'env', 'ready', 'ready_timeout'] as const;
export const ID_TOKEN_KEYS = ['audience', 'variable'] as const;
/** Of a variable under `secrets`. */
export const SECRET_KEYS = ['secret', 'file'] as const;
export const RESOURCE_KEYS = ['cpu', 'memory'] as const;
/** Of these an extension decides: they cannot stand beside `uses`. */
export const EXTENSION_DECIDES = ['run', 'shell', 'outputs'] as const;
/** Of an extension's manifest, `extension.yaml`. */
export const MANIFEST_KEYS = [
  'id',
  'version',
  'description',
  'inputs',
  'outputs',
  'env',
  'run',
  'shell',
  'image',
  'services',
  'resources',
  'network',
  'stages',
] as const;
export const INPUT_KEYS = ['type', 'description', 'required', 'default', 'options', 'choices'] as const;
export const INPUT_TYPES = ['string', 'number', 'boolean', 'choice'] as const;
export const OUTPUT_KEYS = ['description', 'value'] as const;
export const RETRY_KEYS = ['max', 'backoff', 'delay', 'on'] as const;
export const CONCURRENCY_KEYS = ['group', 'cancel_in_progress'] as const;
export const PUSH_KEYS = ['branches', 'branches-ignore', 'tags', 'tags-ignore', 'paths', 'paths-ignore'] as const;

export const ON_KEYS = ['push', 'pull_request'] as const;
export const PULL_REQUEST_KEYS = ['branches', 'paths', 'types', 'cancel_superseded'] as const;
export const PULL_REQUEST_TYPES = ['opened', 'synchronize', 'reopened', 'ready_for_review', 'labeled'] as const;

/** What other systems call a key of ours, by its normal form. */
const OTHER_NAMES: ReadonlyMap<string, string> = new Map([
  ['needs', 'after'],
  ['depends_on', 'after'],
  ['dependencies', 'after'],
  ['requires', 'after'],
  ['if', 'when'],
  ['condition', 'when'],
  ['script', 'run'],
  ['command', 'run'],
  ['commands', 'run'],
  ['steps', 'run'],
  ['environment', 'env'],
  ['variables', 'env'],
  ['working_directory', 'workdir'],
  ['dir', 'workdir'],
  ['timeout_minutes', 'timeout'],
  ['timeout_in_minutes', 'timeout'],
  ['timeout_seconds', 'timeout'],
  ['retries', 'retry'],
  ['continue_on_error', 'allow_failure'],
  ['ignore_errors', 'allow_failure'],
  ['ignore_failure', 'allow_failure'],
  ['failure', 'allow_failure'],
  ['soft_fail', 'allow_failure'],
  ['agents', 'runs_on'],
  ['labels', 'runs_on'],
  ['pool', 'runs_on'],
  ['node', 'runs_on'],
  ['platform', 'runs_on'],
  ['resource_class', 'runs_on'],
  ['vm_image', 'runs_on'],
  ['strategy', 'matrix'],
  ['parallel', 'matrix'],
  ['parallelism', 'matrix'],
  ['jobs', 'stages'],
  ['extension', 'uses'],
  ['action', 'uses'],
  ['component', 'uses'],
  ['task', 'uses'],
  ['settings', 'with'],
  ['inputs', 'with'],
  ['parameters', 'inputs'],
  ['params', 'inputs'],
  ['choices', 'options'],
  ['values', 'options'],
  ['enum', 'options'],
  ['name', 'pipeline.name'],
  ['run_name', 'pipeline.name'],
  ['cron', 'schedule'],
  ['crons', 'schedule'],
  ['schedules', 'schedule'],
  ['container', 'image'],
  ['docker', 'image'],
  ['limits', 'resources'],
  ['readiness', 'ready'],
  ['healthcheck', 'ready'],
  ['pull_policy', 'pull'],
  ['credentials', 'auth'],
  ['cpus', 'cpu'],
  ['mem', 'memory'],
  ['manual', 'approval'],
  ['reviewers', 'approvers'],
  ['users', 'approvers'],
  ['required_approvals', 'quorum'],
  ['prompt', 'message'],
  ['attempts', 'max'],
  ['limit', 'max'],
  ['id_tokens', 'id_token'],
  ['aud', 'audience'],
  ['env', 'variable'],
  ['test_reports', 'reports'],
  ['test_results', 'reports'],
  ['xunit', 'junit'],
  ['path', 'paths'],
  ['restore_keys', 'restore'],
  ['fallback_keys', 'restore'],
  ['caches', 'cache'],
  ['save_cache', 'cache'],
  ['restore_cache', 'cache'],
  ['artifact_paths', 'artifacts'],
  ['store_artifacts', 'artifacts'],
  ['store_test_results', 'reports'],
  ['expire_in', 'expire'],
  ['retention_days', 'expire'],
]);

/** Our name for a key that is known from elsewhere or is one of ours in another spelling, if it is one of those allowed here. */
export function otherName(key: string, allowed: readonly string[]): string | undefined {
  const normal = normalForm(key);
  const spelt = allowed.find((name) => normalForm(name) === normal);
  if (spelt !== undefined) return spelt;
  const name = OTHER_NAMES.get(normal);
  if (name === undefined) return undefined;
  return allowed.includes(name.split('.')[0] ?? '') ? name : undefined;
}

/** One for `runs-on`, `runsOn` and `RUNS_ON`. */
export function normalForm(key: string): string {
  return key
    .slice(0, KEY_LENGTH_MAX)
    .replaceAll('-', '_')
    .replace(/([a-z0-9])([A-Z])/g, '$1_$2')
    .toLowerCase();
}

/** No key of any system is as long. */
const KEY_LENGTH_MAX = 64;
