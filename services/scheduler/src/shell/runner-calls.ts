/**
 * What the owner of a partition asks of runners: to take a job, to stop an attempt. Each is asked once, within
 * RUNNER_ANSWER_MS; who gets no answer asks again. A reply about anything else than what was asked is none.
 */
import {
  type AttemptRef,
  type Bus,
  isSameAttempt,
  type Job,
  type JobReply,
  MessageTooLarge,
  NoResponders,
  RUNNER_ANSWER_MS,
  type StopReply,
  type StopRequest,
  subjects,
} from '@penstock/bus';
import type { JobAnswer, StopAnswer } from '../run/ports.ts';
import type { RunTracer } from '../run/run-tracer.ts';

export class RunnerCalls {
  readonly #bus: Pick<Bus, 'request'>;
  readonly #tracer: Pick<RunTracer, 'traceparent'> | undefined;

  /** `tracer` undefined: traces are off. */
  constructor(bus: Pick<Bus, 'request'>, tracer: Pick<RunTracer, 'traceparent'> | undefined) {
    this.#bus = bus;
    this.#tracer = tracer;
  }

  async sendJob(runner: string, job: Job): Promise<JobAnswer> {
    const traceparent = this.#tracer?.traceparent(job);
    const traced = traceparent === undefined ? job : { ...job, traceparent };
    try {
      return await this.#ask<Job, JobReply>(subjects.job(runner), traced);
    } catch (error) {
      if (error instanceof NoResponders) return 'no-responders';
      return error instanceof MessageTooLarge ? 'too-large' : 'no-answer';
    }
  }

  async sendStop(runner: string, request: StopRequest): Promise<StopAnswer> {
    try {
      return await this.#ask<StopRequest, StopReply>(subjects.stop(runner), request);
    } catch {
      return 'no-answer';
    }
  }

  /** Throws what a request throws. */
  async #ask<Asked extends AttemptRef, Reply extends AttemptRef & { readonly answer: string }>(
    subject: string,
    asked: Asked,
  ): Promise<Reply['answer'] | 'no-answer'> {
    const reply = await this.#bus.request<Asked, Reply>(subject, asked, { timeoutMs: RUNNER_ANSWER_MS });
    return isSameAttempt(reply, asked) ? reply.answer : 'no-answer';
  }
}
