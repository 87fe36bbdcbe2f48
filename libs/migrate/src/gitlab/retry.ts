/** `retry: when`: after which failures a job is tried again. */
import { lookup } from '../lookup.ts';
import type { JobContext } from './job-context.ts';
import { take, takeTexts, type SourceMap } from '../source.ts';

const ENDS: Readonly<Record<string, readonly string[]>> = lookup({
  always: ['failure', 'timeout', 'lost'],
  script_failure: ['failure'],
  job_execution_timeout: ['timeout'],
  stuck_or_timeout_failure: ['timeout'],
  runner_system_failure: ['lost'],
  api_failure: ['lost'],
});

export function retryOn({ stage, ledger }: Pick<JobContext, 'stage' | 'ledger'>, retry: SourceMap): void {
  const reasons = takeTexts(retry, 'when');
  const unknown = reasons.filter((reason) => ENDS[reason] === undefined);
  if (unknown.length > 0)
    ledger.tell(
      retry.line,
      `that '${stage.name}' is tried again after ${unknown.join(', ')}`,
      'stages are tried again after a failure, a time-out or the loss of their runner: `retry: on`',
    );
  if (take(retry, 'exit_codes') !== undefined)
    ledger.tell(retry.line, `the exit codes after which '${stage.name}' is tried again`, 'it is after any here');
  stage.retryOn.push(...new Set(reasons.flatMap((reason) => ENDS[reason] ?? [])));
  // It is tried again after nothing that is known here.
  if (reasons.length > 0 && stage.retryOn.length === 0) stage.retry = undefined;
}
