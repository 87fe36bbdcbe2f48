/** The public API as the load sees it: every call has a deadline, and every failure a kind that says what is known after it. */
import type { Decision, RerunWish, ShownLineage } from './steered.ts';

type Failure =
  /** Answered: not now, and nothing was done that cannot be repeated. */
  | 'unavailable'
  /** No whole answer: it may have been done. */
  | 'broken'
  /** Answered with a code that the caller has to judge. */
  | 'refused'
  /** The server says that it has a bug. */
  | 'internal';

export type Outcome<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly failure: Failure; readonly code: string; readonly message: string };

export interface RunAnswer {
  readonly id: string;
  readonly status: string;
  readonly stages: readonly { readonly name: string; readonly status: string; readonly attempt: number }[];
}

const CALL_MS_MAX = 20_000;
/** Of each kind of failure. */
const EXAMPLES_MAX = 3;
const RUN_FIELDS = 'id status stages { name status attempt }';
/** All that may not change of a run that is over. */
const PICTURE_FIELDS =
  'id status startedAt finishedAt outcome reason parentRunId rootRunId inputs { key value } stages { name status attempt startedAt finishedAt exitCode reason adopted outputs { key value } approvals { by decision at } attempts { number status startedAt finishedAt } }';
const DECIDE = { approved: 'approveStage', rejected: 'rejectStage' } as const;

export class Api {
  readonly url: string;
  readonly apiKey: string;
  /** Milliseconds of each accepted trigger without waiting, for the report. */
  readonly triggerMs: number[] = [];
  readonly failures: Map<string, number>;
  /** The first of each kind, with its words. */
  readonly examples: string[];

  constructor(url: string, apiKey: string, beside?: Api) {
    this.url = url;
    this.apiKey = apiKey;
    this.failures = beside?.failures ?? new Map<string, number>();
    this.examples = beside?.examples ?? [];
  }

  /** Somebody else's; what fails is counted here too. */
  as(token: string): Api {
    return new Api(this.url, token, this);
  }

  async trigger(yaml: string, runId: string, waitSeconds: number): Promise<Outcome<RunAnswer>> {
    const began = performance.now();
    const outcome = await this.#call<{ triggerPipeline: { run: RunAnswer } }>(
      `mutation ($yaml: String, $runId: String, $waitSeconds: Int) { triggerPipeline(yaml: $yaml, runId: $runId, waitSeconds: $waitSeconds) { run { ${RUN_FIELDS} } } }`,
      { yaml, runId, waitSeconds },
    );
    if (outcome.ok && waitSeconds === 0) this.triggerMs.push(performance.now() - began);
    return outcome.ok ? { ok: true, value: outcome.value.triggerPipeline.run } : outcome;
  }

  async cancel(id: string): Promise<Outcome<RunAnswer>> {
    const outcome = await this.#call<{ cancelPipeline: { run: RunAnswer } }>(
      `mutation ($id: String) { cancelPipeline(id: $id) { run { ${RUN_FIELDS} } } }`,
      { id },
    );
    return outcome.ok ? { ok: true, value: outcome.value.cancelPipeline.run } : outcome;
  }

  async rerun(id: string, runId: string, wish: RerunWish): Promise<Outcome<RunAnswer>> {
    const outcome = await this.#call<{ rerunPipeline: { run: RunAnswer } }>(
      `mutation ($id: String, $runId: String, $from: [String!], $onlyFailed: Boolean, $inputs: [KeyValueInput!], $yaml: String) { rerunPipeline(id: $id, runId: $runId, from: $from, onlyFailed: $onlyFailed, inputs: $inputs, yaml: $yaml) { run { ${RUN_FIELDS} } } }`,
      { id, runId, from: wish.from, onlyFailed: wish.onlyFailed, inputs: wish.inputs, yaml: wish.yaml },
    );
    return outcome.ok ? { ok: true, value: outcome.value.rerunPipeline.run } : outcome;
  }

  async decide(decision: Decision, runId: string, stage: string): Promise<Outcome<{ readonly status: string }>> {
    const name = DECIDE[decision];
    const outcome = await this.#call<Record<string, { status: string }>>(
      `mutation ($runId: String, $stage: String) { ${name}(runId: $runId, stage: $stage) { status } }`,
      { runId, stage },
    );
    return outcome.ok ? { ok: true, value: { status: outcome.value[name]?.status ?? 'none' } } : outcome;
  }

  /** Of a run: what is shown of it, as a text. */
  async picture(id: string): Promise<Outcome<{ readonly status: string; readonly text: string } | null>> {
    const outcome = await this.#call<{ run: { status: string } | null }>(
      `query ($id: String) { run(id: $id) { ${PICTURE_FIELDS} } }`,
      { id },
    );
    if (!outcome.ok) return outcome;
    const { run } = outcome.value;
    return { ok: true, value: run === null ? null : { status: run.status, text: JSON.stringify(run) } };
  }

  async lineage(id: string): Promise<Outcome<ShownLineage | null>> {
    const outcome = await this.#call<{ run: ShownLineage | null }>(
      'query ($id: String) { run(id: $id) { parentRunId rootRunId children } }',
      { id },
    );
    return outcome.ok ? { ok: true, value: outcome.value.run } : outcome;
  }

  async run(id: string): Promise<Outcome<RunAnswer | null>> {
    const outcome = await this.#call<{ run: RunAnswer | null }>(
      `query ($id: String) { run(id: $id) { ${RUN_FIELDS} } }`,
      { id },
    );
    return outcome.ok ? { ok: true, value: outcome.value.run } : outcome;
  }

  async newest(limit: number): Promise<Outcome<readonly RunAnswer[]>> {
    const outcome = await this.#call<{ runs: RunAnswer[] }>(
      `query ($limit: Int) { runs(limit: $limit) { ${RUN_FIELDS} } }`,
      { limit },
    );
    return outcome.ok ? { ok: true, value: outcome.value.runs } : outcome;
  }

  logsUrl(id: string): string {
    return `${this.url}/pipeline/${id}/logs`;
  }

  async #call<T>(query: string, variables: Record<string, unknown>): Promise<Outcome<T>> {
    const outcome = await this.#fetch<T>(query, variables);
    // That a run has ended before it could be cancelled is an answer, not a failure.
    if (!outcome.ok && outcome.code !== 'CONFLICT') this.failed(`${outcome.failure} ${outcome.code}`, outcome.message);
    return outcome;
  }

  /** Of a call, or of a stream that a watcher has open. */
  failed(kind: string, message: string): void {
    const count = this.failures.get(kind) ?? 0;
    this.failures.set(kind, count + 1);
    if (count < EXAMPLES_MAX) this.examples.push(`${new Date().toISOString()} ${kind}: ${message}`);
  }

  async #fetch<T>(query: string, variables: Record<string, unknown>): Promise<Outcome<T>> {
    let status = 0;
    let body: {
      data?: T | null;
      errors?: { message: string; extensions?: { code?: string } }[];
      error?: string;
      message?: string;
    };
    try {
      const response = await fetch(`${this.url}/graphql`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', authorization: `Bearer ${this.apiKey}` },
        body: JSON.stringify({ query, variables }),
        signal: AbortSignal.timeout(CALL_MS_MAX),
      });
      status = response.status;
      body = (await response.json()) as typeof body;
    } catch (error) {
      const cause = error instanceof Error && error.cause instanceof Error ? error.cause.message : '';
      return {
        ok: false,
        failure: 'broken',
        code: status === 0 ? 'no answer' : String(status),
        message: `${String(error)} ${cause}`,
      };
    }
    if (status === 503) return { ok: false, failure: 'unavailable', code: '503', message: body.message ?? '' };
    if (status === 502) return { ok: false, failure: 'broken', code: '502', message: body.message ?? '' };
    const [problem] = body.errors ?? [];
    if (problem === undefined && status === 200 && body.data) return { ok: true, value: body.data };
    const code = problem?.extensions?.code ?? String(status);
    const failure: Failure =
      // Costly reads of one client that are under way at once are bounded: while the broker is away they pile up.
      code === 'UNAVAILABLE' || code === 'RATE_LIMITED'
        ? 'unavailable'
        : code === 'INTERNAL_SERVER_ERROR' || status >= 500
          ? 'internal'
          : 'refused';
    return { ok: false, failure, code, message: problem?.message ?? body.message ?? '' };
  }
}
