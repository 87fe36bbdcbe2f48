/** Provider B: GitLab, gitlab.com or a server of one's own. */
import { hash, timingSafeEqual } from 'node:crypto';
import { BadUserInput } from '@penstock/errors';
import {
  actorOf,
  beforeOf,
  changedPaths,
  defaultBranchOf,
  fieldsOf,
  headerOf,
  isNoCommit,
  requireBranch,
  requireCloneUrls,
  requireCommit,
  requireNumber,
  requireRef,
  requireRepository,
  textOf,
  type Fields,
  type Provider,
  type PushEvent,
  type Reading,
} from './provider.ts';

const PUSH_EVENTS: ReadonlySet<string> = new Set(['Push Hook', 'Tag Push Hook']);
/** GitLab lists at most 20 commits of a push, and says how many there were. */
const COMMITS_LISTED_MAX = 20;

export const gitlab: Provider = {
  name: 'git_host_b',
  repositoryPattern: /"path_with_namespace"\s*:\s*("(?:[^"\\]|\\.){1,400}")/gu,

  eventOf: (headers) => headerOf(headers, 'x-hostb-event', 'x-gitlab-event'),

  proofOf: (headers) => headerOf(headers, 'x-hostb-token', 'x-gitlab-token'),

  /** Digests are compared, so that neither the length nor a common beginning shows in the time taken. */
  proves: (proof, _body, secret) => timingSafeEqual(hash('sha256', proof, 'buffer'), hash('sha256', secret, 'buffer')),

  deliveryIdOf(headers, push) {
    const key = headerOf(headers, 'idempotency-key');
    if (key !== undefined) return key;
    const event = headerOf(headers, 'x-hostb-event-uuid', 'x-gitlab-event-uuid');
    // One push of two refs shares the event's id.
    return event === undefined ? null : `${event} ${push.commit} ${push.ref}`;
  },

  read(event, payload) {
    const project = fieldsOf(payload['project']);
    const repository = fieldsOf(payload['repository']);
    if (event === 'Merge Request Hook') return readMergeRequest(payload, project, repository);
    if (!PUSH_EVENTS.has(event))
      return ignored(`the event '${event.slice(0, 50)}' is neither a push nor a merge request`, project, payload);
    const { after, checkout_sha: checkout } = payload;
    if (isNoCommit(after) || (checkout === null && after === undefined))
      return ignored('the ref was deleted', project, payload);
    const head = headOf(payload);
    const listed = Array.isArray(payload['commits']) ? payload['commits'].length : 0;
    const total = payload['total_commits_count'];
    return {
      kind: 'push',
      push: {
        repository: requireRepository(project['path_with_namespace'], 'project.path_with_namespace'),
        ref: requireRef(payload['ref']),
        // Of an annotated tag `after` is the tag itself.
        commit: typeof checkout === 'string' ? requireCommit(checkout, 'checkout_sha') : requireCommit(after, 'after'),
        cloneUrls: cloneUrlsOf(project, repository),
        message: typeof head['message'] === 'string' ? head['message'] : null,
        paths:
          typeof total === 'number' && total > listed ? null : changedPaths(payload['commits'], COMMITS_LISTED_MAX + 1),
        actor: actorOf(payload['user_username'], payload['user_name']),
        ...defaultBranchOf(project['default_branch']),
      },
    };
  },
};

const OPENED: ReadonlyMap<string, 'opened' | 'reopened'> = new Map([
  ['open', 'opened'],
  ['reopen', 'reopened'],
]);

function readMergeRequest(payload: Fields, project: Fields, repository: Fields): Reading {
  const merge = fieldsOf(payload['object_attributes']);
  const head = fieldsOf(merge['last_commit']);
  const about = { ...payload, ref: merge['target_branch'], after: head['id'] };
  const [action, state] = [textOf(merge['action']), textOf(merge['state'])];
  if (state === 'closed' || state === 'merged' || action === 'close' || action === 'merge')
    return ignored('the merge request is closed', project, about);
  // Without `oldrev` its title, its labels, its reviewers have changed, and not its commits.
  const type = action === 'update' && textOf(merge['oldrev']) !== '' ? 'synchronize' : OPENED.get(action);
  if (type === undefined)
    return ignored(
      `nothing runs for a merge request whose commits are as they were ('${action.slice(0, 50)}')`,
      project,
      about,
    );
  const name = requireRepository(project['path_with_namespace'], 'project.path_with_namespace');
  const target = textOf(fieldsOf(merge['target'])['path_with_namespace']);
  if (target !== '' && target !== name)
    throw new BadUserInput("The payload's 'object_attributes.target' is not its 'project'.");
  const number = requireNumber(merge['iid'], 'object_attributes.iid');
  const { source_project_id: from, target_project_id: into } = merge;
  return {
    kind: 'push',
    push: {
      repository: name,
      ref: `refs/merge-requests/${number}/head`,
      commit: requireCommit(head['id'], 'object_attributes.last_commit.id'),
      cloneUrls: cloneUrlsOf(project, repository),
      message: typeof head['message'] === 'string' ? head['message'] : null,
      paths: null,
      actor: actorOf(fieldsOf(payload['user'])['username'], fieldsOf(payload['user'])['name']),
      ...defaultBranchOf(project['default_branch']),
      pullRequest: {
        number,
        branch: requireBranch(merge['target_branch'], 'object_attributes.target_branch'),
        type,
        fork: typeof from !== 'number' || from !== into,
        ...beforeOf(merge['oldrev']),
      },
    },
  };
}

function cloneUrlsOf(project: Fields, repository: Fields): PushEvent['cloneUrls'] {
  return requireCloneUrls(
    'project.git_http_url',
    project['git_http_url'],
    repository['git_http_url'],
    project['http_url'],
    project['git_ssh_url'],
    repository['git_ssh_url'],
    project['ssh_url'],
    project['url'],
    repository['url'],
    project['web_url'],
  );
}

/** The last of the list, or whichever has the id. */
function headOf(payload: Fields): Fields {
  const commits = Array.isArray(payload['commits']) ? payload['commits'].map(fieldsOf) : [];
  const wanted = payload['checkout_sha'] ?? payload['after'];
  return commits.find((commit) => commit['id'] === wanted) ?? {};
}

function ignored(why: string, project: Fields, payload: Fields): Reading {
  return {
    kind: 'ignored',
    why,
    repository: textOf(project['path_with_namespace']),
    ref: textOf(payload['ref']),
    commit: textOf(payload['checkout_sha'] ?? payload['after']),
  };
}
