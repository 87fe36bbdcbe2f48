import type { V1Pod } from '@kubernetes/client-node';
import { describe, expect, it } from 'vitest';
import { endingOf, type KnownOfPod } from '../src/pod/ending.ts';
import { stateOf, type PodState } from '../src/pod/pod-state.ts';

type Status = NonNullable<V1Pod['status']>;

function pod(status: Status, metadata: V1Pod['metadata'] = {}): V1Pod {
  return { metadata: { uid: 'u1', ...metadata }, status };
}

const container = (state: object, more: object = {}) => ({
  name: 'stage',
  image: 'tools:1',
  imageID: '',
  ready: false,
  restartCount: 0,
  state,
  ...more,
});
const stage = (state: object): Status => ({ containerStatuses: [container(state)] });

const ended = (status: Status, more: Partial<KnownOfPod> = {}) =>
  endingOf({
    wasBegun: true,
    isAbandoned: false,
    stopped: null,
    done: null,
    state: stateOf(pod(status)),
    isGone: false,
    ...more,
  });

describe("a Pod's state", () => {
  it.each([
    ['InvalidImageName', 'bad', true],
    ['ErrImagePull', 'failed to pull: not found', true],
    ['ErrImagePull', 'pull access denied, repository may require authorization', true],
    ['ImagePullBackOff', 'dial tcp: i/o timeout', false],
  ])('an image that waits for %s (%s) is at fault for good: %s', (reason, message, isFinal) => {
    const { fault } = stateOf(pod(stage({ waiting: { reason, message } })));
    expect(fault).toMatchObject({ reason: 'image', isFinal });
    expect(fault?.message).toContain('tools:1');
  });

  it('an image without a shell is at fault, and so is a service that has ended', () => {
    const shell = { terminated: { exitCode: 128, reason: 'StartError', message: 'exec: "sh": not found' } };
    expect(stateOf(pod(stage(shell))).fault).toMatchObject({ reason: 'image', isFinal: true });
    const initContainerStatuses = [
      container(
        { waiting: { reason: 'CrashLoopBackOff' } },
        { name: 'service-db', restartCount: 1, lastState: { terminated: { exitCode: 3 } } },
      ),
    ];
    expect(stateOf(pod({ initContainerStatuses })).fault).toEqual({
      reason: 'service',
      message: "the service 'db' ended with exit code 3 before the stage did",
      isFinal: true,
    });
  });

  it('says why it is not scheduled', () => {
    const conditions = [
      { type: 'PodScheduled', status: 'False', message: '0/1 nodes are available: Insufficient cpu.' },
    ];
    expect(stateOf(pod({ conditions })).waitsFor).toBe(
      'it could not be scheduled: 0/1 nodes are available: Insufficient cpu.',
    );
  });
});

describe('an ending', () => {
  const terminated = (reason: string, exitCode: number, message = ''): Status =>
    stage({ terminated: { reason, exitCode, message } });

  it('is what the guard has said, also where the Pod was evicted right after it', () => {
    const evicted = { ...terminated('Error', 137), reason: 'Evicted', message: 'low on memory' };
    expect(ended(evicted, { done: { code: 0, cause: 'exit' } })).toEqual({ kind: 'exit', code: 0 });
    expect(ended(evicted)).toMatchObject({ kind: 'unplaced', reason: 'evicted' });
  });

  it.each<[string, Status, Partial<KnownOfPod>, object]>([
    ['out of memory', terminated('OOMKilled', 137), {}, { kind: 'signal', signal: 'SIGKILL', code: 137, oom: true }],
    [
      'out of memory, as its guard saw it',
      terminated('OOMKilled', 137),
      { done: { code: 137, cause: 'exit' } },
      { kind: 'signal', signal: 'SIGKILL', code: 137, oom: true },
    ],
    ['a stop', terminated('Error', 143), { stopped: 'cancelled' }, { kind: 'stopped', reason: 'cancelled' }],
    ['a time-out', terminated('Error', 143), { stopped: 'timeout' }, { kind: 'timeout' }],
    ['the end of its session', terminated('Error', 143), { isAbandoned: true }, { kind: 'lost' }],
    ['its last deadline', { ...terminated('Error', 137), reason: 'DeadlineExceeded' }, {}, { kind: 'lost' }],
    [
      'its fence',
      terminated('Error', 124, 'its runner has not answered any more'),
      {},
      { kind: 'lost', cause: 'its container ended: its runner has not answered any more' },
    ],
    [
      'itself, before its session was over',
      terminated('Completed', 0),
      { isAbandoned: true, done: { code: 0, cause: 'exit' } },
      { kind: 'exit', code: 0 },
    ],
    [
      'its fence, before its Pod was gone',
      terminated('Error', 124, 'its runner has not answered any more'),
      { isGone: true },
      { kind: 'lost' },
    ],
    ['a node that is lost', stage({ running: {} }), {}, { kind: 'lost' }],
    ['its Pod being gone', stage({ running: {} }), { isGone: true }, { kind: 'unplaced', reason: 'evicted' }],
    [
      'a drain',
      {
        ...stage({ running: {} }),
        conditions: [{ type: 'DisruptionTarget', status: 'True', reason: 'EvictionByEvictionAPI' }],
      },
      { done: { code: 143, cause: 'outside' } },
      { kind: 'unplaced', reason: 'evicted' },
    ],
  ])('of %s is told as such', (_what, status, more, wanted) => {
    expect(ended(status, more)).toMatchObject(wanted);
  });

  it('a stage that ended itself by SIGTERM has done so, where nobody took it away', () => {
    expect(ended(terminated('Error', 143), { done: { code: 143, cause: 'outside' } })).toMatchObject({
      kind: 'signal',
      signal: 'SIGTERM',
    });
  });

  it('by its own disk is its own end, and by a node that is short of it is none', () => {
    const evicted = (message: string): Status => ({ ...stage({}), reason: 'Evicted', message });
    expect(ended(evicted('Usage of EmptyDir volume "folder-0" exceeds the limit "5". '))).toMatchObject({
      kind: 'signal',
      oom: false,
    });
    expect(ended(evicted('The node was low on resource: ephemeral-storage.'))).toMatchObject({ reason: 'evicted' });
  });

  it('is told in the words of its guard, which nobody else can write', () => {
    const terminated = (name: string, message: string) =>
      container({ terminated: { exitCode: 124, reason: 'Error', message } }, { name });
    const both = { containerStatuses: [terminated('guard', 'no answer'), terminated('stage', 'all was well')] };
    expect(ended(both)).toMatchObject({ kind: 'lost', cause: expect.stringContaining('no answer') });
  });

  it('of what never began says what it waited for', () => {
    const state: PodState = {
      uid: 'u1',
      stage: { kind: 'none' },
      guard: { kind: 'none' },
      waitsFor: 'it could not be scheduled',
      isDeleting: false,
      isPastDeadline: false,
      services: [],
    };
    expect(endingOf({ wasBegun: false, isAbandoned: false, stopped: null, done: null, state, isGone: false })).toEqual({
      kind: 'lost',
      cause: 'it could not be scheduled',
    });
  });
});
