/** What a run that has ended says about its code, in one word, and what the word rests on. Pure: the same view has the same verdict. */
import { isEnded } from './evolve.ts';
import type { RunView, StageView } from './state.ts';
import type { StageReason } from './stage-state.ts';

/** In the order of precedence: of those that fit, the first. */
type RunVerdict = 'cancelled' | 'interrupted' | 'infrastructure' | 'failed' | 'flaky' | 'passed';

export interface Judgement {
  readonly verdict: RunVerdict;
  /** Sentences for a person; bounded. */
  readonly evidence: readonly string[];
}

/** The machinery's doing, as sentences say it after the stage's name. What the file or its author can mend is not among them. */
const INFRASTRUCTURE: Readonly<Partial<Record<StageReason, string>>> = {
  runner_lost: 'its runner was lost',
  no_runner: 'no runner took it',
  checkout: 'its files could not be had',
  image: 'its image could not be had',
  evicted: 'its place was taken from it',
  quarantined: 'the engine could not go on with it',
};

/** Of a run, or of a stage whose failure counts. */
function isInfrastructure(reason: StageReason | null): reason is StageReason {
  return reason !== null && INFRASTRUCTURE[reason] !== undefined;
}

/** Sentences about stages; how many more there are is one more. */
const SENTENCES_MAX = 10;

/** Null while the run goes on. Other runs of the same commit are for `withEarlierFailure`. */
export function judge(run: RunView): Judgement | null {
  if (!isEnded(run.status)) return null;
  if (run.status === 'CANCELLED')
    return {
      verdict: 'cancelled',
      evidence: [`the run was cancelled with ${run.cancelledStages ?? 0} stages unfinished`],
    };
  if (run.status === 'FAILED') return judgeFailed(run);
  const flaky = run.stages.filter(passedAtLast);
  if (flaky.length > 0) return { verdict: 'flaky', evidence: sentences(flaky, sayPassedAtLast) };
  return { verdict: 'passed', evidence: sentences(run.stages.filter(isTolerated), sayTolerated) };
}

function judgeFailed(run: RunView): Judgement {
  const failures = run.stages.filter(
    (stage) =>
      (stage.status === 'FAILED' && stage.tolerated !== true) ||
      (stage.status === 'CANCELLED' && stage.reason !== null),
  );
  const broken = failures.filter(({ reason }) => isInfrastructure(reason));
  const own =
    run.reason === null ? [] : [isInfrastructure(run.reason) ? sayRun(run.reason) : `the run failed (${run.reason})`];
  if (run.outcome === 'interrupted')
    return {
      verdict: 'interrupted',
      evidence: sentences(
        broken.filter(({ reason }) => reason === 'runner_lost'),
        sayBroken,
      ),
    };
  if (broken.length > 0 || isInfrastructure(run.reason))
    return { verdict: 'infrastructure', evidence: [...own, ...sentences(broken, sayBroken)] };
  return {
    verdict: 'failed',
    evidence: [
      ...own,
      ...sentences(
        failures.filter(({ status }) => status === 'FAILED'),
        sayFailed,
      ),
    ],
  };
}

/** A run that has passed says that it was luck where an earlier one of the same commit and definition failed by itself. */
export function withEarlierFailure(judgement: Judgement, earlier: Pick<RunView, 'id'>): Judgement {
  if (judgement.verdict !== 'passed' && judgement.verdict !== 'flaky') return judgement;
  return {
    verdict: 'flaky',
    evidence: [...judgement.evidence, `the run ${earlier.id} of the same commit and definition failed before it`],
  };
}

function passedAtLast({ status, failedAttempts = 0 }: StageView): boolean {
  return status === 'SUCCESS' && failedAttempts > 0;
}

function isTolerated({ status }: StageView): boolean {
  return status === 'FAILED';
}

function sentences(stages: readonly StageView[], say: (stage: StageView) => string): string[] {
  const said = stages.slice(0, SENTENCES_MAX).map(say);
  const more = stages.length - said.length;
  return more > 0 ? [...said, `and ${more} more stages`] : said;
}

function sayPassedAtLast({ name, failedAttempts = 0 }: StageView): string {
  return `'${name}' passed after ${failedAttempts} failed ${failedAttempts === 1 ? 'attempt' : 'attempts'}`;
}

function sayTolerated({ name }: StageView): string {
  return `'${name}' failed, which fails nothing`;
}

function sayBroken({ name, reason }: StageView): string {
  return `'${name}' failed: ${(reason !== null && INFRASTRUCTURE[reason]) || 'the reason is not known'}`;
}

function sayFailed({ name, reason, exitCode }: StageView): string {
  const cause =
    reason === 'exit' && exitCode !== null ? `exit code ${exitCode}` : (reason ?? 'the reason is not known');
  return `'${name}' failed (${cause})`;
}

function sayRun(reason: StageReason): string {
  return reason === 'quarantined' ? 'the engine could not go on with the run' : `the run could not begin (${reason})`;
}
