/**
 * Repositories whose files want a run each minute. They are pushed before the faults, again with another commit amid them, and
 * without a schedule when all is healed and what was due has been fired. The account has what was pushed and when.
 */
import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { githubPush, githubSignature, makeRepository, type TestRepository } from '@penstock/webhook-ingest/testing';
import type { Random } from '../../support/random.ts';
import { WEBHOOK_SECRET } from '../doors/deliveries.ts';
import { ask, untilAnswered } from '../doors/http.ts';
import type { JournaledRun } from '../journal.ts';

export interface TickAccount {
  /** By repository. */
  readonly lines: ReadonlyMap<string, TickLine>;
}

export interface TickLine {
  readonly commits: readonly string[];
  /** From when on its ticks are promised: when the answer to the first push was there. Absent: it was never answered. */
  readonly from?: number | undefined;
  /** Up to when: everything was healed then, and an owner had time after it. */
  readonly until: number;
}

interface Pushed {
  readonly name: string;
  readonly repository: TestRepository;
  readonly commits: string[];
  from?: number | undefined;
}

const REPOSITORIES = 3;
export const MINUTE_MS = 60_000;
/** For what is due when all is healed: a lookup that failed is tried again after five seconds. */
const FIRED_MS_MAX = 40_000;
const LOOK_MS = 500;

function fileOf(number: number, schedule: string): string {
  return [
    'engine: any',
    'pipeline:',
    '  name: minutely',
    schedule,
    'stages:',
    '  only:',
    `    run: test $PENSTOCK_ATTEMPT -gt 0 # ${number}`,
    '    retry: { max: 6, delay: 1s, on: [lost] }',
  ].join('\n');
}

export class TickLoad {
  readonly #url: string;
  readonly #random: Random;
  readonly #pushed: Pushed[];
  readonly #prefix: string;
  #deliveries = 0;

  constructor(url: string, random: Random) {
    this.#url = url;
    this.#random = random;
    // The same seed may come again on the same cluster, where deliveries with ids that were seen change nothing.
    this.#prefix = `acme/minutely-${randomUUID()}`;
    this.#pushed = Array.from({ length: REPOSITORIES }, (_, index) => ({
      name: `${this.#prefix}-${index}`,
      repository: makeRepository(),
      commits: [],
    }));
  }

  /** Before the faults, and amid them. */
  async push(signal: AbortSignal): Promise<void> {
    await Promise.all(
      this.#pushed.map(async (each) => {
        const isDone = await this.#send(each, "schedule: ['* * * * *']", signal);
        if (isDone) each.from ??= Date.now();
      }),
    );
  }

  /** Everything is healed: waits for what is due by now, unless clocks are left wrong, and ends the schedules. */
  async finish(
    read: () => Promise<ReadonlyMap<string, JournaledRun>>,
    { clocksWrong }: { readonly clocksWrong: boolean },
  ): Promise<TickAccount> {
    const until = Date.now();
    const due = Math.floor(until / MINUTE_MS) * MINUTE_MS;
    const deadline = performance.now() + FIRED_MS_MAX;
    const promised = this.#pushed.filter(({ from = Infinity }) => from <= due && !clocksWrong);
    const open = new Set(promised.map(({ name }) => name));
    for (; open.size > 0 && performance.now() < deadline; await pause(LOOK_MS))
      for (const { repository, tick } of ticksIn(await read())) if (tick >= due) open.delete(repository);
    const signal = AbortSignal.timeout(FIRED_MS_MAX);
    await Promise.all(this.#pushed.map((each) => this.#send(each, '', signal)));
    for (const { repository } of this.#pushed) repository.remove();
    return { lines: new Map(this.#pushed.map(({ name, commits, from }) => [name, { commits, from, until }])) };
  }

  /** Of all pushes the last one to be stored stands; each has a commit of its own. */
  async #send(pushed: Pushed, schedule: string, signal: AbortSignal): Promise<boolean> {
    const { repository, name, commits } = pushed;
    this.#deliveries += 1;
    const id = `${this.#prefix}-delivery-${this.#deliveries}`;
    const commit = repository.commit({ '.pipeline.yaml': fileOf(this.#deliveries, schedule) });
    commits.push(commit);
    const push = githubPush({ repository: name, url: repository.url, commit });
    const body = JSON.stringify({ ...push, repository: { ...(push['repository'] as object), default_branch: 'main' } });
    const headers = {
      'content-type': 'application/json',
      'x-github-event': 'push',
      'x-github-delivery': id,
      'x-hub-signature-256': githubSignature(body, WEBHOOK_SECRET),
    };
    const once = (): ReturnType<typeof ask> => ask(`${this.#url}/webhook`, { method: 'POST', headers, body });
    return (await untilAnswered(once, this.#random, signal))?.status === 200;
  }
}

export interface FoundTick {
  readonly run: JournaledRun;
  readonly repository: string;
  readonly commit: string;
  readonly tick: number;
  readonly missed: number;
}

/** The runs that schedules began. */
export function ticksIn(runs: ReadonlyMap<string, JournaledRun>): FoundTick[] {
  return [...runs.values()].flatMap((run) => {
    const [first] = run.events;
    // A repeat of such a run has its origin too.
    if (first?.type !== 'run_created' || first.lineage !== undefined) return [];
    const { tick, repository = '', commit = '' } = first.origin;
    return tick === undefined ? [] : [{ run, repository, commit, tick: tick.at, missed: tick.missed }];
  });
}
