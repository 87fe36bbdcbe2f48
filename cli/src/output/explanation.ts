/** A run in plain sentences: what it waits for, or what failed and what has changed since it last succeeded. Pure. */
import type { Changed, ExplainedRun, ExplainedStage, ExplainedWait, FailedStage, SinceGreen } from './explained-run.ts';
import { printableText } from './printable-text.ts';
import { durationText } from './stage-tally.ts';

const STAGES_MAX = 20;
const CHANGES_MAX = 10;
const COMMIT_CHARACTERS = 12;

/** One line each; those of logs and lists are indented. All of it came from a server, so none of it reaches a terminal as it came. */
export function explanationOf(run: ExplainedRun, nowMs: number): string[] {
  return linesOf(run, nowMs).map(printableText);
}

function linesOf(run: ExplainedRun, nowMs: number): string[] {
  const name = `The run ${run.id} of '${run.pipelineName}'`;
  switch (run.status) {
    case 'PENDING':
    case 'QUEUED':
    case 'RUNNING':
      return goesOn(run, name, nowMs);
    case 'FAILED':
      return [
        `${name} FAILED${becauseOf(run.reason)}.`,
        ...evidenceOf(run),
        ...failures(run),
        ...changes(run.sinceGreen),
      ];
    case 'SUCCESS':
      return [`${name} ended SUCCESS: nothing of it waits, and nothing failed.`, ...evidenceOf(run)];
    default:
      return [`${name} ended ${run.status}${becauseOf(run.reason)}.`, ...evidenceOf(run), ...failures(run)];
  }
}

function goesOn(run: ExplainedRun, name: string, nowMs: number): string[] {
  const lines: string[] = [];
  if (run.running.length > 0)
    lines.push(
      `${name} is ${run.status}: ${namesOf(run.running)} ${run.running.length === 1 ? 'is' : 'are'} executed now.`,
    );
  else lines.push(`${name} is ${run.status}, and nothing of it is executed now.`);
  if (run.waitingOn.length === 0 && run.stages.length === 0) return lines;
  const isHeld =
    run.stages.length > 0 &&
    run.stages.every(({ waitingOn }) => isSame(waitingOn, run.waitingOn)) &&
    run.waitingOn.every((wait) => holdsRun(wait, run));
  if (isHeld || run.stages.length === 0) {
    for (const wait of run.waitingOn) lines.push(sentenceOf(wait, nowMs));
    if (run.stages.length > 1) lines.push(`All ${run.stages.length} of its stages that have not begun wait with it.`);
    return lines;
  }
  for (const stage of run.stages.slice(0, STAGES_MAX)) lines.push(...stageLines(stage, nowMs));
  if (run.stages.length > STAGES_MAX) lines.push(`${run.stages.length - STAGES_MAX} more stages wait.`);
  return lines;
}

/** Whether the run as a whole waits for it; else it is said of which stage it is. */
function holdsRun({ kind, holder }: ExplainedWait, { stages }: ExplainedRun): boolean {
  if (kind === 'concurrency') return holder === null || isRunId(holder);
  // A gate is QUEUED while it waits; of a run that nobody has approved no stage is.
  if (kind === 'approval') return stages.every(({ status }) => status === 'PENDING');
  return ['quota', 'paused', 'store', 'broker'].includes(kind);
}

function stageLines({ name, status, waitingOn }: ExplainedStage, nowMs: number): string[] {
  const [first, ...others] = waitingOn;
  const beginning = `'${name}' is ${status}.`;
  if (first === undefined) return [beginning];
  return [`${beginning} ${sentenceOf(first, nowMs)}`, ...others.map((wait) => `  ${sentenceOf(wait, nowMs)}`)];
}

function sentenceOf({ kind, holder, since, etaSecs, message }: ExplainedWait, nowMs: number): string {
  const parts = [message];
  // A stage that is waited for stands in the message.
  if (holder !== null && (kind === 'quota' || (kind === 'concurrency' && isRunId(holder))))
    parts.push(`The run ${holder} goes on before it.`);
  if (since !== null) parts.push(`It has waited for ${durationText(nowMs - Date.parse(since))}.`);
  if (etaSecs !== null)
    parts.push(
      etaSecs === 0
        ? 'It may go on at any moment.'
        : `As earlier runs tell, it waits for about ${durationText(etaSecs * 1000)} more.`,
    );
  return parts.join(' ');
}

function failures({ failed }: ExplainedRun): string[] {
  return failed.flatMap((stage) => [failureOf(stage), ...stage.lastLines.map((line) => `  | ${line}`)]);
}

function failureOf({ name, reason, exitCode, attempt, lastLines }: FailedStage): string {
  const exit = reason === 'exit' && exitCode !== null ? exitOf(exitCode) : becauseOf(reason);
  const attempts = attempt > 1 ? `, in its attempt ${attempt}` : '';
  const text = `'${name}' failed${exit}${attempts}`;
  return lastLines.length === 0 ? `${text}.` : `${text}. Its last lines:`;
}

function exitOf(code: number): string {
  return code === 0 ? ': its $SERVICE_OUTPUT cannot be read' : ` with exit code ${code}`;
}

const REASONS: Readonly<Record<string, string>> = {
  timeout: 'it took longer than it may',
  oom: 'it took more memory than it may',
  signal: 'a signal ended it',
  runner_lost: 'its runner was lost',
  no_runner: 'no runner took it in time',
  checkout: 'its commit could not be checked out',
  image: 'its image could not be had',
  service: 'a service beside it did not come up',
  artifacts: 'its files could not be kept or had',
  evicted: 'its place was taken away',
  secret: 'a secret that it names could not be had',
  pipeline_file: 'its pipeline file could not be had, or has mistakes',
  log_limit: 'it wrote more than it may',
  quota: 'a limit is used up: runs of the month, kept files, outputs, or stages',
  quarantined: 'the engine could not go on with it',
  rejected: 'somebody rejected it',
  approval: 'nobody approved it in time',
};

function becauseOf(reason: string | null): string {
  if (reason === null) return '';
  return Object.hasOwn(REASONS, reason) ? `: ${REASONS[reason]}` : ` (${reason})`;
}

function evidenceOf({ verdict, verdictEvidence }: ExplainedRun): string[] {
  if (verdict === null || verdict === 'failed' || verdict === 'passed') return [];
  return [`Its verdict is '${verdict}': ${verdictEvidence.join('; ')}.`];
}

function changes(since: SinceGreen | null | undefined): string[] {
  if (since === undefined) return [];
  if (since === null)
    return ['No run of this pipeline before it ended SUCCESS, so there is nothing to compare it with.'];
  const lines = [
    ...commitLine(since.commit),
    ...(since.file === null
      ? []
      : [`the pipeline file: lines that are new: ${since.file.added}, lines that are gone: ${since.file.removed}`]),
    ...since.extensions.map(({ uses, ...version }) => `${uses}: ${fromTo(version)}`),
    ...since.inputs.map(({ key, ...value }) => `the input '${key}': ${fromTo(value)}`),
    ...since.stages.map(({ stage, change }) => `the stage '${stage}' is ${change}`),
  ];
  const last = `the last run of the pipeline that ended SUCCESS, ${since.run} of ${since.startedAt}`;
  const unknown = since.isFileKnown ? [] : ['Whether its file has changed is not for you to see.'];
  if (lines.length === 0)
    return [
      `Commit, file and inputs are the same as in ${last}: what failed is not in them, or fails now and then.`,
      ...unknown,
    ];
  const shown = lines.slice(0, CHANGES_MAX).map((line) => `  ${line}`);
  const more = lines.length > CHANGES_MAX ? [`  and ${lines.length - CHANGES_MAX} more`] : [];
  return [`This has changed since ${last}:`, ...shown, ...more, ...unknown];
}

function commitLine(commit: Changed<string | null> | null): string[] {
  if (commit === null) return [];
  const short = (text: string | null): string => (text === null ? 'none' : text.slice(0, COMMIT_CHARACTERS));
  return [`the commit: ${short(commit.before)} before, ${short(commit.now)} now`];
}

function fromTo({ before, now }: Changed<string | null>): string {
  const text = (value: string | null): string => (value === null ? 'none' : `'${value}'`);
  return `${text(before)} before, ${text(now)} now`;
}

function namesOf(names: readonly string[]): string {
  const shown = names.slice(0, 3).map((name) => `'${name}'`);
  return names.length > shown.length ? `${shown.join(', ')} and ${names.length - shown.length} more` : shown.join(', ');
}

function isRunId(text: string): boolean {
  return /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/u.test(text);
}

function isSame(a: readonly ExplainedWait[], b: readonly ExplainedWait[]): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}
