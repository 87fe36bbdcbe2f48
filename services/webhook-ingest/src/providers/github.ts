/** Provider A: GitHub, github.com or a server of one's own. */
import { timingSafeEqual } from 'node:crypto';
import { BadUserInput } from '@penstock/errors';
import { hmacOf } from './digest.ts';
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

/** GitHub writes lower case; other senders' libraries write hexadecimal digits in upper case. */
const SIGNATURE = /^sha256=[0-9a-fA-F]{64}$/u;
/** GitHub lists at most so many commits of a push. */
const COMMITS_MAX = 2_048;

export const github: Provider = {
  name: 'git_host_a',
  repositoryPattern: /"full_name"\s*:\s*("(?:[^"\\]|\\.){1,400}")/gu,

  eventOf: (headers) => headerOf(headers, 'x-githosta-event', 'x-github-event'),

  proofOf: (headers) => headerOf(headers, 'x-hub-signature-256'),

  proves(proof, body, secret) {
    if (!SIGNATURE.test(proof)) return false;
    const given = Buffer.from(proof.slice('sha256='.length).toLowerCase());
    const isRight = (mac: string): boolean => timingSafeEqual(given, Buffer.from(mac));
    const mac = hmacOf(secret, body);
    return typeof mac === 'string' ? isRight(mac) : mac.then(isRight);
  },

  deliveryIdOf: (headers) => headerOf(headers, 'x-githosta-delivery', 'x-github-delivery') ?? null,

  read(event, payload) {
    const repository = fieldsOf(payload['repository']);
    if (event === 'pull_request') return readPullRequest(payload, repository);
    if (event !== 'push')
      return ignored(`the event '${event.slice(0, 50)}' is neither a push nor a pull request`, repository, payload);
    if (payload['deleted'] === true || isNoCommit(payload['after']))
      return ignored('the ref was deleted', repository, payload);
    const ref = requireRef(payload['ref']);
    const head = fieldsOf(payload['head_commit']);
    // An annotated tag is an object of its own: what it points at is the head commit.
    const commit =
      ref.startsWith('refs/tags/') && textOf(head['id']) !== ''
        ? requireCommit(head['id'], 'head_commit.id')
        : requireCommit(payload['after'] ?? head['id'], 'after');
    return {
      kind: 'push',
      push: {
        repository: requireRepository(repository['full_name'], 'repository.full_name'),
        ref,
        commit,
        cloneUrls: cloneUrlsOf(repository),
        message: typeof head['message'] === 'string' ? head['message'] : null,
        paths: changedPaths(payload['commits'], COMMITS_MAX),
        actor: actorOf(fieldsOf(payload['sender'])['login'], fieldsOf(payload['pusher'])['name']),
        ...defaultBranchOf(repository['default_branch']),
      },
    };
  },
};

/** What GitHub calls what happened, as far as something can come of it. */
const TYPES = ['opened', 'synchronize', 'reopened', 'ready_for_review', 'labeled'] as const;

function readPullRequest(payload: Fields, repository: Fields): Reading {
  const pull = fieldsOf(payload['pull_request']);
  const [head, base] = [fieldsOf(pull['head']), fieldsOf(pull['base'])];
  const about = { ...payload, ref: base['ref'], after: head['sha'] };
  const action = textOf(payload['action']);
  if (textOf(pull['state']) === 'closed' || action === 'closed')
    return ignored('the pull request is closed', repository, about);
  const type = TYPES.find((known) => known === action);
  if (type === undefined)
    return ignored(`nothing runs for a pull request that was '${action.slice(0, 50)}'`, repository, about);
  const name = requireRepository(repository['full_name'], 'repository.full_name');
  const [from, into] = [fieldsOf(head['repo']), fieldsOf(base['repo'])];
  if (textOf(into['full_name']) !== '' && into['full_name'] !== name)
    throw new BadUserInput("The payload's 'pull_request.base.repo' is not its 'repository'.");
  const number = requireNumber(payload['number'] ?? pull['number'], 'number');
  return {
    kind: 'push',
    push: {
      repository: name,
      ref: `refs/pull/${number}/head`,
      commit: requireCommit(head['sha'], 'pull_request.head.sha'),
      cloneUrls: cloneUrlsOf(repository),
      message: null,
      paths: null,
      actor: actorOf(fieldsOf(payload['sender'])['login'], fieldsOf(pull['user'])['login']),
      ...defaultBranchOf(repository['default_branch']),
      pullRequest: {
        number,
        branch: requireBranch(base['ref'], 'pull_request.base.ref'),
        type,
        // Where it comes from may be gone by now.
        fork: from['full_name'] !== name || from['id'] !== (into['id'] ?? repository['id']),
        ...beforeOf(payload['before']),
      },
    },
  };
}

function cloneUrlsOf(repository: Fields): PushEvent['cloneUrls'] {
  return requireCloneUrls(
    'repository.clone_url',
    repository['clone_url'],
    repository['html_url'],
    repository['url'],
    repository['ssh_url'],
    repository['git_url'],
  );
}

function ignored(why: string, repository: Fields, payload: Fields): Reading {
  return {
    kind: 'ignored',
    why,
    repository: textOf(repository['full_name']),
    ref: textOf(payload['ref']),
    commit: textOf(payload['after']),
  };
}
