/**
 * Mutants of operators that lived, were read, and change nothing that a test could tell: with them a night's list is what has to be
 * looked at. A line that has changed since is an error of the tests (MUTANT-1), so that its reason is read again.
 */
export interface Equivalent {
  readonly file: string;
  /** Of `operators.ts`. */
  readonly operator: string;
  /** Without its indentation. */
  readonly line: string;
  /** The function that it stands in, where the same line in another one is no equivalent. */
  readonly within?: string | undefined;
  readonly why: string;
}

export const equivalents: readonly Equivalent[] = [
  {
    file: 'libs/bus/src/jetstream/partition-log.ts',
    operator: 'has a bound ten times as high',
    line: 'const READ_BYTES = 4 * 1024 * 1024;',
    why: 'The same commits come in fewer and larger answers, below the 64 MiB that may wait for a client at the broker.',
  },
  {
    file: 'libs/store/src/run-documents.ts',
    operator: 'includes a bound',
    line: 'if (step < STEP_CHARACTERS) continue;',
    why: 'A step that has just so many characters has one event more.',
  },
  {
    file: 'libs/bus/src/jetstream/partition-log.ts',
    operator: 'includes a bound',
    line: 'config.max_bytes > 0 ? state.bytes / config.max_bytes : 0,',
    why: 'A stream without a limit has -1; the broker stores no limit of 0.',
  },
  {
    file: 'libs/bus/src/jetstream/lease-watch.ts',
    operator: 'takes "and" for "or"',
    line: 'if (round.synced && round.failure === null)',
    why: 'It decides whether a line is logged, and nothing else.',
  },
  {
    file: 'services/runner/src/session/offers.ts',
    operator: 'adds one too few',
    line: 'time.after(forMs + 1, () => this.pump());',
    why: 'A timer may fire a part of a millisecond early: by a clock of whole ones there is no difference.',
  },
  {
    file: 'services/runner/src/session/offers.ts',
    operator: 'takes "or" for "and"',
    line: 'if (this.#stopped || schedulers.members.size < 2) return;',
    why: 'What a stop withdraws is on its way back already, and from a scheduler that is alone nothing moves to itself.',
  },
  {
    file: 'libs/executor/src/process/leftovers.ts',
    operator: 'has a bound ten times as high',
    line: 'const LINES_MAX = 512;',
    why: 'The file is written anew later, and is longer meanwhile: what it lists that lives is the same.',
  },
  {
    file: 'services/scheduler/src/shell/definition-reader.ts',
    operator: 'has a bound ten times as high',
    line: 'const CREATE_MS_MAX = 9_000;',
    why: 'The same refusal comes when its sender waits no more: only a clock could tell.',
  },
  {
    file: 'services/scheduler/src/shell/journal-purge.ts',
    operator: 'includes a bound',
    line: 'if (this.#newest !== undefined && this.#newest.at < until) return this.#newest.sequence;',
    why: 'What is two hours old to the millisecond goes now or with the next tick.',
  },
  {
    file: 'services/scheduler/src/shell/journal-purge.ts',
    operator: 'includes a bound',
    line: 'this.#positions.splice(0, kept < 0 ? this.#positions.length : kept);',
    why: 'What is purged up to is one of the positions, so the first that is kept is never the first of all.',
  },
  {
    file: 'services/standalone/src/serve.ts',
    operator: 'has a bound ten times as high',
    line: 'const LAST_EVENTS_MS = 500;',
    why: 'A stop takes longer, and nothing else: only a clock could tell.',
  },
  {
    file: 'libs/bus/src/jetstream/streams.ts',
    operator: 'excludes a bound',
    line: 'if (!mayPass(error) || performance.now() >= deadline) throw error;',
    why: 'A set-up that fails to the very microsecond of its deadline is tried once more: only a clock could tell.',
  },
  {
    file: 'services/scheduler/src/admission/concurrency-slots.ts',
    operator: 'includes a bound',
    line: 'if (last === undefined || byTurn(last, run) < 0) runs.push(run);',
    why: 'It is 0 for a run and itself alone, and no run is put in that stands there.',
  },
  {
    file: 'services/runner/src/session/session.ts',
    operator: 'leaves a statement out',
    line: 'this.#callOffRenewal();',
    why: 'A renewal that falls due when the session is over sends nothing, and is the last one.',
  },
  {
    file: 'services/scheduler/src/shell/projector.ts',
    operator: 'includes a bound',
    line: 'if (counters.length > 0)',
    why: 'Of no counters none is written, and nobody is asked.',
  },
  {
    file: 'services/scheduler/src/dispatch/dispatch.ts',
    operator: 'leaves a statement out',
    line: 'this.#idle.delete(session);',
    within: '#mayFind',
    why: 'Who wants something and stands among the idle ones as well is looked at twice, and finds the same.',
  },
  {
    file: 'services/gateway/src/graphql/answer-cache.ts',
    operator: 'includes a bound',
    line: 'if (kept?.changes === null && performance.now() - kept.keptAt < ENDED_MS) return this.#again(key, kept);',
    why: 'An answer that is kept to the very microsecond holds once more: only a clock could tell.',
  },
  {
    file: 'services/scheduler/src/run/commit.ts',
    operator: 'includes a bound',
    line: "if (event.type !== 'run_created' || (event.extensions === undefined && event.yaml.length < DEFLATE_FROM))",
    why: 'A text of that very length is read in either form.',
  },
  {
    file: 'services/scheduler/src/shell/projector.ts',
    operator: 'takes "and" for "or"',
    line: '} else if (only !== undefined && run !== undefined) await this.#refused(only, run, error);',
    why: 'No batch is empty: both are there, and only the compiler asks.',
  },
  {
    file: 'services/runner/src/runner.ts',
    operator: 'has a bound ten times as high',
    line: 'const ANSWERS_MS_MAX = 3_000;',
    why: 'A drain whose answers do not come takes longer, and nothing else: only a clock could tell.',
  },
  {
    file: 'services/webhook-ingest/src/processing/processing.ts',
    operator: 'takes "is" for "is not"',
    line: 'if (first === null) throw new Error(`the decision about delivery ${delivery.id} was there and is gone`);',
    why: 'Either way the delivery is processed again, and then reads the decision before it makes one.',
  },
  {
    file: 'services/gateway/src/event-stream/event-stream.ts',
    operator: 'answers the opposite',
    line: 'if (!endsAttempt(event)) return false;',
    why: 'What ends no attempt waits for nothing, so it has been emitted before this is asked: only the compiler asks.',
  },
];
