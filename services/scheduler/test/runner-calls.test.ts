/** What an owner asks of runners, on a bus of the test's. */
import {
  BrokerAway,
  type AttemptRef,
  type Job,
  MessageTooLarge,
  NoResponders,
  RequestTimeout,
  RUNNER_ANSWER_MS,
  type StopRequest,
} from '@penstock/bus';
import { describe, expect, it } from 'vitest';
import { RunnerCalls } from '../src/shell/runner-calls.ts';

const ref: AttemptRef = { runId: 'run', stage: 'build', attempt: 2, session: 's1', credit: 7 };
const job = { ...ref, key: 'ada' } as unknown as Job;
const stop: StopRequest = { ...ref, reason: 'cancelled' };

/** `answer`: the runner's, or what the bus throws. */
function calls(answer: unknown, traceparent?: string) {
  const asked: { subject: string; body: unknown; timeoutMs: number }[] = [];
  const bus = {
    request: async <Req, Rep>(subject: string, body: Req, { timeoutMs }: { timeoutMs: number }): Promise<Rep> => {
      asked.push({ subject, body, timeoutMs });
      if (answer instanceof Error) throw answer;
      return answer as Rep;
    },
  };
  const tracer = traceparent === undefined ? undefined : { traceparent: () => traceparent };
  return { calls: new RunnerCalls(bus, tracer), asked };
}

describe('what the owner of a partition asks of runners', () => {
  it('a job is asked of its runner once, within the time that a runner has to answer', async () => {
    const accepting = calls({ ...ref, answer: 'accepted' });
    await expect(accepting.calls.sendJob('r1', job)).resolves.toBe('accepted');
    expect(accepting.asked).toEqual([{ subject: 'job.r1', body: job, timeoutMs: RUNNER_ANSWER_MS }]);
  });

  it('a stop is asked in the same way', async () => {
    const stopping = calls({ ...ref, answer: 'gone' });
    await expect(stopping.calls.sendStop('r1', stop)).resolves.toBe('gone');
    expect(stopping.asked).toEqual([{ subject: 'stop.r1', body: stop, timeoutMs: RUNNER_ANSWER_MS }]);
  });

  it.each<[string, Partial<AttemptRef>]>([
    ['run', { runId: 'another' }],
    ['stage', { stage: 'test' }],
    ['attempt', { attempt: 1 }],
    ['session', { session: 's2' }],
    ['credit', { credit: 8 }],
  ])('a reply about another %s is none', async (_what, other) => {
    await expect(calls({ ...ref, ...other, answer: 'refused' }).calls.sendJob('r1', job)).resolves.toBe('no-answer');
    await expect(calls({ ...ref, ...other, answer: 'gone' }).calls.sendStop('r1', stop)).resolves.toBe('no-answer');
  });

  it('a reply that is nothing at all is none', async () => {
    await expect(calls(null).calls.sendJob('r1', job)).resolves.toBe('no-answer');
    await expect(calls(null).calls.sendStop('r1', stop)).resolves.toBe('no-answer');
  });

  it.each<[string, Error, string]>([
    ['that nobody listens for', new NoResponders('job.r1'), 'no-responders'],
    ['that no message can hold', new MessageTooLarge('job.r1', 2, 1), 'too-large'],
    ['that is not answered in time', new RequestTimeout('job.r1', RUNNER_ANSWER_MS), 'no-answer'],
    ['while the broker is away', new BrokerAway('away', false), 'no-answer'],
  ])('a job %s is told apart', async (_what, error, answer) => {
    await expect(calls(error).calls.sendJob('r1', job)).resolves.toBe(answer);
  });

  it('a stop that nobody listens for has no answer: that says nothing of the process', async () => {
    await expect(calls(new NoResponders('stop.r1')).calls.sendStop('r1', stop)).resolves.toBe('no-answer');
  });

  it('a job carries what its spans are parts of, where traces are on', async () => {
    const traced = calls({ ...ref, answer: 'held' }, '00-trace');
    await expect(traced.calls.sendJob('r1', job)).resolves.toBe('held');
    expect(traced.asked.map(({ body }) => body)).toEqual([{ ...job, traceparent: '00-trace' }]);
  });
});
