/**
 * Pushes of a git host: each delivery is sent until it is answered 200, some of them again at once, some again later. The account
 * has every run that an answer named.
 */
import { githubPush, githubSignature, makeRepository, type TestRepository } from '@penstock/webhook-ingest/testing';
import { setTimeout as pause } from 'node:timers/promises';
import type { Random } from '../../support/random.ts';
import { ask, untilAnswered } from './http.ts';

export interface DeliveryAccount {
  /** Of the ids of its deliveries, and of no other load's. */
  readonly prefix: string;
  /** By delivery: the run ids in its answers. */
  readonly answered: ReadonlyMap<string, ReadonlySet<string>>;
  /** Sent, and never answered: such a run may exist or not. */
  readonly unanswered: ReadonlySet<string>;
  /** Answers that no delivery of this load deserves. */
  readonly refused: readonly string[];
}

export const WEBHOOK_SECRET = 'the secret of a chaos run';
const REPOSITORIES = 3;
const REPEATED_SHARE = 0.3;
const REPEAT_MS_MAX = 4_000;
const PIPELINE = [
  'engine: any',
  'pipeline:',
  '  name: pushed',
  'stages:',
  '  only:',
  '    run: test -f here',
  '    retry: { max: 6, delay: 1s, on: [lost] }',
].join('\n');

export class DeliveryLoad {
  readonly #url: string;
  readonly #random: Random;
  readonly #repositories: { readonly repository: TestRepository; readonly commit: string }[] = [];
  readonly #answered = new Map<string, Set<string>>();
  readonly #unanswered = new Set<string>();
  readonly #refused: string[] = [];
  readonly #prefix: string;
  #sent = 0;

  constructor(url: string, random: Random) {
    this.#url = url;
    this.#random = random;
    this.#prefix = `chaos-${random.int(2 ** 31)}-`;
  }

  async push(signal: AbortSignal): Promise<void> {
    this.#sent += 1;
    const id = `${this.#prefix}${this.#sent}`;
    const index = this.#random.int(REPOSITORIES);
    const isRepeated = this.#random.chance(REPEATED_SHARE);
    const laterMs = this.#random.chance(0.5) ? 0 : this.#random.int(REPEAT_MS_MAX);
    this.#unanswered.add(id);
    const again = async (): Promise<void> => {
      await pause(laterMs);
      await this.#send(id, index, signal);
    };
    await Promise.all([this.#send(id, index, signal), ...(isRepeated ? [again()] : [])]);
  }

  account(): DeliveryAccount {
    for (const { repository } of this.#repositories) repository.remove();
    return { prefix: this.#prefix, answered: this.#answered, unanswered: this.#unanswered, refused: this.#refused };
  }

  async #send(id: string, index: number, signal: AbortSignal): Promise<void> {
    const { repository, commit } = this.#repository(index);
    const body = JSON.stringify(githubPush({ repository: `acme/repository-${index}`, url: repository.url, commit }));
    const headers = {
      'content-type': 'application/json',
      'x-github-event': 'push',
      'x-github-delivery': id,
      'x-hub-signature-256': githubSignature(body, WEBHOOK_SECRET),
    };
    const answer = await untilAnswered(
      () => ask(`${this.#url}/webhook`, { method: 'POST', headers, body }),
      this.#random,
      signal,
    );
    if (answer === null) return;
    const runId = answer.body['run_id'];
    if (answer.status !== 200 || typeof runId !== 'string') {
      this.#refused.push(`${id} was answered ${answer.status} ${JSON.stringify(answer.body)}`);
      return;
    }
    this.#unanswered.delete(id);
    this.#answered.set(id, (this.#answered.get(id) ?? new Set()).add(runId));
  }

  /** Made when they are first pushed to: a load without pushes has none. */
  #repository(index: number): { readonly repository: TestRepository; readonly commit: string } {
    while (this.#repositories.length < REPOSITORIES) {
      const repository = makeRepository();
      this.#repositories.push({ repository, commit: repository.commit({ '.pipeline.yaml': PIPELINE, here: 'x' }) });
    }
    const found = this.#repositories[index];
    if (found === undefined) throw new RangeError(`there is no repository ${index}`);
    return found;
  }
}
