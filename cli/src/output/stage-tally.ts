/** Keeps what the closing table says of each stage, in the order of the file where that is known, else of appearance. */
import type { PublicEvent, TestsSummary } from '@penstock/run/public-events';

export interface StageRow {
  readonly name: string;
  status: 'PENDING' | 'RUNNING' | 'SUCCESS' | 'FAILED' | 'SKIPPED' | 'CANCELLED';
  startedAtMs: number | undefined;
  finishedAtMs: number | undefined;
  attempts: number;
  reason: string | undefined;
  tests: TestsSummary | undefined;
}

export class StageTally {
  readonly #rows = new Map<string, StageRow>();
  startedAtMs: number | undefined;
  finishedAtMs: number | undefined;
  runStatus: 'SUCCESS' | 'FAILED' | 'SKIPPED' | 'CANCELLED' | undefined;

  constructor(names: readonly string[], startedAtMs?: number) {
    for (const name of names) this.#row(name);
    this.startedAtMs = startedAtMs;
  }

  get rows(): readonly StageRow[] {
    return [...this.#rows.values()];
  }

  rowOf(name: string): StageRow | undefined {
    return this.#rows.get(name);
  }

  take(event: PublicEvent): void {
    const atMs = Date.parse(event.timestamp);
    this.startedAtMs ??= atMs;
    switch (event.type) {
      case 'stage_log':
        return;
      case 'stage_started': {
        const row = this.#row(event.stage);
        row.status = 'RUNNING';
        row.startedAtMs ??= atMs;
        row.attempts = event.attempt;
        return;
      }
      case 'stage_retrying':
        this.#row(event.stage).status = 'PENDING';
        return;
      case 'stage_completed': {
        const row = this.#row(event.stage);
        row.status = event.status === 'Success' ? 'SUCCESS' : 'FAILED';
        row.finishedAtMs = atMs;
        row.reason = event.status === 'Success' ? undefined : reasonText(event.reason, event.exitCode);
        row.tests = event.tests;
        return;
      }
      case 'stage_skipped': {
        const row = this.#row(event.stage);
        row.status = 'SKIPPED';
        row.finishedAtMs = atMs;
        row.reason = reasonText(event.reason, undefined);
        return;
      }
      case 'pipeline_completed':
        this.runStatus = event.status;
        this.finishedAtMs = atMs;
        return;
      case 'pipeline_cancelled':
        this.runStatus = 'CANCELLED';
        this.finishedAtMs = atMs;
        for (const row of this.#rows.values()) {
          if (row.status !== 'PENDING' && row.status !== 'RUNNING') continue;
          if (row.status === 'RUNNING') row.finishedAtMs = atMs;
          row.status = 'CANCELLED';
        }
        return;
      default:
        // A newer server's event that this command does not know.
        return;
    }
  }

  #row(name: string): StageRow {
    let row = this.#rows.get(name);
    if (row === undefined) {
      row = {
        name,
        status: 'PENDING',
        startedAtMs: undefined,
        finishedAtMs: undefined,
        attempts: 0,
        reason: undefined,
        tests: undefined,
      };
      this.#rows.set(name, row);
    }
    return row;
  }
}

const REASONS: Readonly<Record<string, string>> = {
  timeout: 'timed out',
  oom: 'out of memory',
  signal: 'killed by a signal',
  runner_lost: 'its runner was lost',
  no_runner: 'no runner took it',
  image: 'its image could not be had',
  service: 'a service beside it was never ready',
  evicted: 'it was evicted from where it ran',
  checkout: 'its workspace could not be made',
  pipeline_file: 'the pipeline file is bad',
  log_limit: 'too much output',
  quota: 'over its quota',
  quarantined: 'the run was quarantined',
  cancelled: 'stopped, for another of its matrix failed',
  dependency: 'a stage it comes after did not succeed',
  when: 'its condition is false',
};

export function reasonText(reason: string | undefined, exitCode: number | undefined): string {
  if (reason === 'exit' && exitCode === 0) return 'its $SERVICE_OUTPUT cannot be read';
  if (reason === 'exit' || reason === undefined) return exitCode === undefined ? 'failed' : `exit code ${exitCode}`;
  const text = Object.hasOwn(REASONS, reason) ? REASONS[reason] : undefined;
  return reason === 'signal' && exitCode !== undefined && exitCode > 128
    ? `killed by signal ${exitCode - 128}`
    : (text ?? reason);
}

/** `0.4 s`, `12 s`, `3 min 5 s`, `2 h 3 min`. */
export function durationText(milliseconds: number): string {
  const seconds = Math.max(0, milliseconds) / 1000;
  if (seconds < 0.995) return `${seconds.toFixed(2)} s`;
  if (seconds < 9.95) return `${seconds.toFixed(1)} s`;
  const whole = Math.round(seconds);
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${whole % 60} s`;
  return `${Math.floor(whole / 3600)} h ${Math.floor((whole % 3600) / 60)} min`;
}
