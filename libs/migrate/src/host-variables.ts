/** Variables that other engines set in every job, and the shell text that has the same value here. */

import { lookup } from './lookup.ts';
import { quoted, variablesOf } from './shell-text.ts';

export type HostVariables = Readonly<Record<string, string>>;

const BRANCH = '$(case "${SERVICE_REF:-}" in refs/heads/*) echo "${SERVICE_REF#refs/heads/}" ;; esac)';
const TAG = '$(case "${SERVICE_REF:-}" in refs/tags/*) echo "${SERVICE_REF#refs/tags/}" ;; esac)';
const REF_NAME = '${SERVICE_REF#refs/*/}';
const COMMIT = '${SERVICE_COMMIT:-}';
const REPOSITORY = '${SERVICE_REPOSITORY:-}';
const REQUEST = '$(echo "${SERVICE_REF:-}" | cut -d / -f 3)';

export const GITHUB_VARIABLES: HostVariables = lookup({
  GITHUB_SHA: COMMIT,
  GITHUB_REF: '${SERVICE_REF:-}',
  GITHUB_REF_NAME: REF_NAME,
  GITHUB_REF_TYPE: '$(case "${SERVICE_REF:-}" in refs/tags/*) echo tag ;; *) echo branch ;; esac)',
  GITHUB_REPOSITORY: REPOSITORY,
  GITHUB_REPOSITORY_OWNER: '${SERVICE_REPOSITORY%%/*}',
  GITHUB_WORKSPACE: '$PWD',
  GITHUB_STEP_SUMMARY: '/dev/stdout',
  GITHUB_ACTIONS: 'false',
  RUNNER_OS: 'Linux',
  RUNNER_TEMP: '${TMPDIR:-/tmp}',
  CI: 'true',
});

export const GITLAB_VARIABLES: HostVariables = lookup({
  CI_COMMIT_SHA: COMMIT,
  CI_COMMIT_SHORT_SHA: '$(printf %.8s "${SERVICE_COMMIT:-}")',
  CI_COMMIT_REF_NAME: REF_NAME,
  CI_COMMIT_REF_SLUG: `$(printf %.63s "${REF_NAME}" | tr 'A-Z' 'a-z' | tr -c 'a-z0-9' -)`,
  CI_COMMIT_BRANCH: BRANCH,
  CI_COMMIT_TAG: TAG,
  CI_PROJECT_PATH: REPOSITORY,
  CI_PROJECT_NAME: '${SERVICE_REPOSITORY##*/}',
  CI_PROJECT_NAMESPACE: '${SERVICE_REPOSITORY%/*}',
  CI_PROJECT_DIR: '$PWD',
  CI_MERGE_REQUEST_IID: REQUEST,
  CI_BUILDS_DIR: '$PWD/..',
  GITLAB_CI: 'false',
  CI: 'true',
});

export const WOODPECKER_VARIABLES: HostVariables = lookup({
  CI_COMMIT_SHA: COMMIT,
  CI_COMMIT_REF: '${SERVICE_REF:-}',
  CI_COMMIT_BRANCH: BRANCH,
  CI_COMMIT_TAG: TAG,
  CI_COMMIT_PULL_REQUEST: REQUEST,
  CI_REPO: REPOSITORY,
  CI_REPO_NAME: '${SERVICE_REPOSITORY##*/}',
  CI_REPO_OWNER: '${SERVICE_REPOSITORY%/*}',
  CI_WORKSPACE: '$PWD',
  CI: 'true',
});

/** What an expression says, and no variable of a stage. */
const BY_EXPRESSION: Readonly<Record<string, string>> = lookup({
  GITHUB_RUN_ID: '${{ run.id }}',
  GITHUB_ACTOR: '${{ run.actor }}',
  GITHUB_EVENT_NAME: '${{ run.trigger }}',
  GITHUB_WORKFLOW: '${{ pipeline.name }}',
  CI_PIPELINE_ID: '${{ run.id }}',
  CI_PIPELINE_SOURCE: '${{ run.trigger }}',
  CI_PIPELINE_NUMBER: '${{ run.id }}',
  CI_PIPELINE_EVENT: '${{ run.trigger }}',
  CI_COMMIT_AUTHOR: '${{ run.actor }}',
  GITLAB_USER_LOGIN: '${{ run.actor }}',
});
const OF_THE_STAGE = new Set(['GITHUB_JOB', 'CI_JOB_NAME', 'CI_STEP_NAME']);

export interface Prelude {
  readonly commands: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** Read by the scripts, set by the other engine, and not known here. */
  readonly unknown: readonly string[];
}

/** What sets the variables of the other engine that the texts read. */
export function preludeOf(
  texts: readonly string[],
  table: HostVariables,
  { prefix, own, stage }: { readonly prefix: RegExp; readonly own: ReadonlySet<string>; readonly stage: string },
): Prelude {
  const commands: string[] = [];
  const env: Record<string, string> = {};
  const unknown: string[] = [];
  for (const name of variablesOf(texts.join('\n'))) {
    if (own.has(name)) continue;
    if (OF_THE_STAGE.has(name)) commands.push(`export ${name}=${quoted(stage)}`);
    else if (table[name] !== undefined) commands.push(`export ${name}="${table[name]}"`);
    else if (BY_EXPRESSION[name] !== undefined) env[name] = BY_EXPRESSION[name];
    else if (prefix.test(name)) unknown.push(name);
  }
  return { commands, env, unknown };
}
