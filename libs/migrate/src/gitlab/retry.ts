/** `retry: when`: after which failures a job is tried again. */
import { lookup } from '../lookup.ts';
import type { JobContext } from './job-context.ts';
import { take, takeText, takeTexts, textsOf, type SourceNode } from '../source.ts';

/** As a retry has it that says nothing of the kind, a plain number as well. */
const ALWAYS = ['failure', 'timeout', 'lost'];
const ENDS: Readonly<Record<string, readonly string[]>> = lookup({
  always: ALWAYS,
  script_failure: ['failure'],
  job_execution_timeout: ['timeout'],
  stuck_or_timeout_failure: ['timeout', 'lost'],
  runner_system_failure: ['lost'],
  api_failure: ['lost'],
});

export function retryOn({ stage, ledger }: Pick<JobContext, 'stage' | 'ledger'>, retry: SourceNode): void {
  if (retry.kind !== 'map') {
    stage.retry = textsOf(retry)[0];
    stage.retryOn.push(...ALWAYS);
    return;
  }
  stage.retry = takeText(retry, 'max');
  const reasons = takeTexts(retry, 'when');
  const unknown = reasons.filter((reason) => ENDS[reason] === undefined);
  if (unknown.length > 0)
    ledger.tell(
      retry.line,
      `that '${stage.name}' is tried again after ${unknown.join(', ')}`,
      'stages are tried again after a failure, a time-out or the loss of their runner: `retry: on`',
    );
  const known = reasons.flatMap((reason) => ENDS[reason] ?? []);
  // A script has them, whatever else `when` says.
  const byExitCode = take(retry, 'exit_codes') !== undefined;
  if (byExitCode)
    ledger.tell(retry.line, `the exit codes after which '${stage.name}' is tried again`, 'it is after any here');
  if (byExitCode) known.push('failure');
  stage.retryOn.push(...new Set(reasons.length === 0 && !byExitCode ? ALWAYS : known));
  // It is tried again after nothing that is known here.
  if (stage.retryOn.length === 0) stage.retry = undefined;
}
