/** Work like that of a team, without an end: runs, their streams, lists, cancels, reruns; and the oldest deleted, so that as many stay. */
import { setTimeout as pause } from 'node:timers/promises';
import type { RunningServer } from '../support/server.ts';
import { readStream } from '../support/sse.ts';

/** Of that each client keeps; the database has them all. */
const KEPT_EACH = 60;
const CANCEL_EVERY = 10;
const RERUN_EVERY = 7;
const ENDS: readonly string[] = ['pipeline_completed', 'pipeline_cancelled'];
const REST_MS = 100;
const RUN_MS_MAX = 10 * 60_000;

const FILE = `pipeline: {name: soak}
stages:
  build:
    run: |
      for i in $(seq 1 100); do echo line $i of the build; done
      echo v=1 >> "$SERVICE_OUTPUT"
    outputs: [v]
  unit: {after: build, run: echo unit}
  lint: {after: build, run: echo lint}
`;
const LONG = 'pipeline: {name: long}\nstages: {wait: {run: sleep 600}}\n';

export class SoakLoad {
  readonly #server: RunningServer;
  readonly #stopping = new AbortController();
  readonly #clients: Promise<void>[];
  ended = 0;
  readonly problems: string[] = [];

  constructor(server: RunningServer, clients: number) {
    this.#server = server;
    this.#clients = Array.from({ length: clients }, (_, client) => this.#work(client));
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await Promise.all(this.#clients);
  }

  async #work(client: number): Promise<void> {
    const kept: string[] = [];
    // One that was cancelled would sleep to its end if it ran again.
    let passed: string | undefined;
    for (let turn = client; !this.#stopping.signal.aborted; turn += 1) {
      try {
        const id = await this.#turn(turn, passed);
        kept.push(id);
        if (turn % CANCEL_EVERY !== 0) passed = id;
        while (kept.length > KEPT_EACH)
          await this.#ask('mutation ($id: String) { deleteRun(id: $id) }', { id: kept.shift() });
      } catch (error) {
        this.problems.push(error instanceof Error ? error.message : String(error));
        await pause(1_000);
      }
      await pause(REST_MS);
    }
  }

  /** The run that it made. */
  async #turn(turn: number, earlier: string | undefined): Promise<string> {
    const isCancelled = turn % CANCEL_EVERY === 0;
    const isRerun = !isCancelled && turn % RERUN_EVERY === 0 && earlier !== undefined;
    const { id } = isRerun
      ? await this.#newRun('mutation ($id: String!) { made: rerunPipeline(id: $id, waitSeconds: 0) { run { id } } }', {
          id: earlier,
        })
      : await this.#newRun(
          'mutation ($yaml: String!) { made: triggerPipeline(yaml: $yaml, waitSeconds: 0) { run { id } } }',
          { yaml: isCancelled ? LONG : FILE },
        );
    if (isCancelled) await this.#ask('mutation ($id: String!) { cancelPipeline(id: $id) { cancelledStages } }', { id });
    const { events } = await readStream(`${this.#server.url}/pipeline/${id}/logs`, this.#server.apiKey, {
      signal: AbortSignal.timeout(RUN_MS_MAX),
    });
    if (!ENDS.includes(events.at(-1)?.event ?? '')) throw new Error(`the stream of ${id} ended before its run`);
    await this.#ask('{ runs(limit: 20) { id status stages { name status } } }', {});
    this.ended += 1;
    return id;
  }

  async #newRun(query: string, variables: Record<string, unknown>): Promise<{ readonly id: string }> {
    const { made } = await this.#ask<{ made: { run: { id: string } } }>(query, variables);
    return made.run;
  }

  async #ask<T>(query: string, variables: Record<string, unknown>): Promise<T> {
    const { data, errors } = await this.#server.graphql<T>(query, variables);
    if (errors !== undefined) throw new Error(JSON.stringify(errors));
    return data;
  }
}
