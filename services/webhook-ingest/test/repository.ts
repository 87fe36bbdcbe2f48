/** Git repositories in a temporary folder, as a push would find them, and the payloads of such pushes. */
import { execFileSync } from 'node:child_process';
import { createHmac } from 'node:crypto';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';

export interface TestRepository {
  readonly folder: string;
  /** `file://…` */
  readonly url: string;
  /** Commits these files in place of all that was there; the commit's id. `null` in place of a text: a link to /etc/passwd. */
  commit(files: Readonly<Record<string, string | null>>, message?: string): string;
  git(...args: readonly string[]): string;
  remove(): void;
}

export function makeRepository(): TestRepository {
  const folder = mkdtempSync(join(tmpdir(), 'penstock-repository-'));
  const git = (...args: readonly string[]): string =>
    execFileSync('git', ['-C', folder, ...args], {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
      env: {
        PATH: process.env['PATH'],
        HOME: folder,
        GIT_CONFIG_NOSYSTEM: '1',
        GIT_AUTHOR_NAME: 'a',
        GIT_AUTHOR_EMAIL: 'a@example.com',
        GIT_COMMITTER_NAME: 'a',
        GIT_COMMITTER_EMAIL: 'a@example.com',
      },
    }).trim();
  git('init', '-q', '-b', 'main');
  return {
    folder,
    url: `file://${folder}`,
    git,
    commit(files, message = 'a change') {
      git('rm', '-rqf', '--ignore-unmatch', '.');
      for (const [path, text] of Object.entries(files)) {
        mkdirSync(dirname(join(folder, path)), { recursive: true });
        if (text === null) symlinkSync('/etc/passwd', join(folder, path));
        else writeFileSync(join(folder, path), text);
      }
      git('add', '-A');
      git('commit', '-q', '--allow-empty', '-m', message);
      return git('rev-parse', 'HEAD');
    },
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
}

export function pipelineText(name: string, more = ''): string {
  return `engine: any\npipeline:\n  name: ${name}\n${more}stages:\n  build:\n    run: echo built\n`;
}

export interface PushOptions {
  readonly repository?: string;
  readonly ref?: string;
  readonly url: string;
  readonly commit: string;
  readonly message?: string | undefined;
  readonly changed?: readonly string[] | undefined;
}

/** As GitHub sends it, the part of it that matters. */
export function githubPush({
  repository = 'acme/demo',
  ref = 'refs/heads/main',
  url,
  commit,
  message,
  changed,
}: PushOptions): Record<string, unknown> {
  const head = message === undefined ? null : { id: commit, message };
  const commits =
    changed === undefined ? [] : [{ id: commit, message: message ?? '', added: [], removed: [], modified: changed }];
  return {
    ref,
    before: '0'.repeat(40),
    after: commit,
    created: false,
    deleted: false,
    forced: false,
    repository: { full_name: repository, clone_url: url, default_branch: 'trunk', private: false },
    head_commit: head,
    commits,
  };
}

/** As GitLab documents it, the part of it that matters. */
export function gitlabPush({
  repository = 'acme/demo',
  ref = 'refs/heads/main',
  url,
  commit,
  message = 'a change',
  changed = ['README.md'],
}: PushOptions): Record<string, unknown> {
  return {
    object_kind: 'push',
    event_name: 'push',
    before: '0'.repeat(40),
    after: commit,
    ref,
    checkout_sha: commit,
    project: {
      path_with_namespace: repository,
      default_branch: 'trunk',
      git_http_url: url,
      web_url: `https://gitlab.example/${repository}`,
    },
    commits: [{ id: commit, message, added: [], modified: changed, removed: [] }],
    total_commits_count: 1,
  };
}

export function githubSignature(body: string | Buffer, secret: string): string {
  return `sha256=${createHmac('sha256', secret).update(body).digest('hex')}`;
}

export interface PullOptions {
  readonly repository?: string;
  readonly number?: number;
  readonly action?: string;
  readonly branch?: string;
  readonly state?: string;
  readonly fork?: boolean;
  readonly url: string;
  readonly commit: string;
  /** As GitHub says it of `synchronize`. */
  readonly before?: string;
}

/** As GitHub sends it, the part of it that matters. */
export function githubPull({
  repository = 'acme/demo',
  number = 7,
  action = 'opened',
  branch = 'main',
  state = 'open',
  fork = false,
  url,
  commit,
  before,
}: PullOptions): Record<string, unknown> {
  const base = { id: 1, full_name: repository, clone_url: url, default_branch: 'trunk', private: false };
  return {
    action,
    number,
    ...(before === undefined ? {} : { before, after: commit }),
    pull_request: {
      number,
      state,
      user: { login: 'grace' },
      head: {
        ref: 'topic',
        sha: commit,
        repo: fork ? { id: 2, full_name: 'mallory/demo', clone_url: 'file:///nowhere', private: false } : base,
      },
      base: { ref: branch, sha: '1'.repeat(40), repo: base },
    },
    repository: base,
    sender: { login: 'ada' },
  };
}

/** As GitLab documents it, the part of it that matters. */
export function gitlabMerge({
  repository = 'acme/demo',
  number = 7,
  action = 'open',
  branch = 'main',
  state = 'opened',
  fork = false,
  url,
  commit,
  oldrev,
}: PullOptions & { readonly oldrev?: string }): Record<string, unknown> {
  return {
    object_kind: 'merge_request',
    user: { username: 'ada' },
    project: {
      id: 1,
      path_with_namespace: repository,
      default_branch: 'trunk',
      git_http_url: url,
      web_url: `https://gitlab.example/${repository}`,
    },
    object_attributes: {
      iid: number,
      action,
      state,
      ...(oldrev === undefined ? {} : { oldrev }),
      source_branch: 'topic',
      target_branch: branch,
      source_project_id: fork ? 2 : 1,
      target_project_id: 1,
      target: { path_with_namespace: repository },
      last_commit: { id: commit, message: 'a change' },
    },
  };
}
