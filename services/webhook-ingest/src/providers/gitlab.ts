/** Provider B: GitLab, gitlab.com or a server of one's own. */
import { hash, timingSafeEqual } from 'node:crypto';
import {
  actorOf,
  changedPaths,
  fieldsOf,
  headerOf,
  isNoCommit,
  requireCloneUrls,
  requireCommit,
  requireRef,
  requireRepository,
  textOf,
  type Fields,
  type Provider,
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
    if (!PUSH_EVENTS.has(event)) return ignored(`the event '${event.slice(0, 50)}' is no push`, project, payload);
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
        cloneUrls: requireCloneUrls(
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
        ),
        message: typeof head['message'] === 'string' ? head['message'] : null,
        paths:
          typeof total === 'number' && total > listed ? null : changedPaths(payload['commits'], COMMITS_LISTED_MAX + 1),
        actor: actorOf(payload['user_username'], payload['user_name']),
      },
    };
  },
};

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
