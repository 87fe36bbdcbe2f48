/** What a run that has ended says about its code, in one word, and what the word rests on. Pure: the same view has the same verdict. */
import { isEnded } from './evolve.ts';
import type { RunView, StageView } from './state.ts';
import type { RunStatus, StageReason } from './stage-state.ts';

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
function isInfrastructure(reason: StageReason | null | undefined): boolean {
  return reason !== null && reason !== undefined && INFRASTRUCTURE[reason] !== undefined;
}

/** Sentences about stages; how many more there are is one more. */
const SENTENCES_MAX = 10;

/** What a verdict rests on: of a run's state as of its view. */
interface Judged {
  readonly status: RunStatus;
  readonly outcome?: RunView['outcome'] | undefined;
  readonly reason?: StageReason | null | undefined;
}

interface JudgedStage {
  readonly status: RunStatus;
  readonly reason?: StageReason | null | undefined;
  readonly failedAttempts?: number | undefined;
  readonly tolerated?: true | undefined;
}

/** Null while the run goes on; no sentence is made for it. Stages to which nothing has happened may be left out. */
export function verdictOf({ status, outcome, reason }: Judged, stages: Iterable<JudgedStage>): RunVerdict | null {
  if (!isEnded(status)) return null;
  if (status === 'CANCELLED') return 'cancelled';
  if (status !== 'FAILED') return some(stages, passedAtLast) ? 'flaky' : 'passed';
  if (outcome === 'interrupted') return 'interrupted';
  return isInfrastructure(reason) || some(stages, isBroken) ? 'infrastructure' : 'failed';
}

function some(stages: Iterable<JudgedStage>, isWanted: (stage: JudgedStage) => boolean): boolean {
  for (const stage of stages) if (isWanted(stage)) return true;
  return false;
}

/** Null while the run goes on. Other runs of the same commit are for `withEarlierFailure`. */
export function judge(run: RunView): Judgement | null {
  const verdict = verdictOf(run, run.stages);
  return verdict === null ? null : { verdict, evidence: evidenceOf(verdict, run) };
}

function evidenceOf(verdict: RunVerdict, run: RunView): string[] {
  switch (verdict) {
    case 'cancelled':
      return [`the run was cancelled with ${unfinished(run.cancelledStages ?? 0)}`];
    case 'interrupted':
      return sentences(
        run.stages.filter((stage) => isBroken(stage) && stage.reason === 'runner_lost'),
        sayBroken,
      );
    case 'infrastructure':
      return [...ownReason(run), ...sentences(run.stages.filter(isBroken), sayBroken)];
    case 'failed':
      return [...ownReason(run), ...sentences(run.stages.filter(isOwnFailure), sayFailed)];
    case 'flaky':
      return sentences(run.stages.filter(passedAtLast), sayPassedAtLast);
    case 'passed':
      return sentences(run.stages.filter(isTolerated), sayTolerated);
  }
}

function ownReason({ reason }: RunView): string[] {
  if (reason === null) return [];
  return [isInfrastructure(reason) ? sayRun(reason) : `the run failed (${reason})`];
}

function isOwnFailure({ status, tolerated }: JudgedStage): boolean {
  return status === 'FAILED' && tolerated !== true;
}

/** One whose failure counts, and is the machinery's doing. */
function isBroken(stage: JudgedStage): boolean {
  return (isOwnFailure(stage) || stage.status === 'CANCELLED') && isInfrastructure(stage.reason);
}

/** A run that has passed says that it was luck where an earlier one of the same commit and definition failed by itself. */
export function withEarlierFailure(judgement: Judgement, earlier: Pick<RunView, 'id'>): Judgement {
  if (judgement.verdict !== 'passed' && judgement.verdict !== 'flaky') return judgement;
  return {
    verdict: 'flaky',
    evidence: [...judgement.evidence, `the run ${earlier.id} of the same commit and definition failed before it`],
  };
}

function passedAtLast({ status, failedAttempts = 0 }: JudgedStage): boolean {
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
  return `'${name}' failed (${causeOf(reason, exitCode)})`;
}

function causeOf(reason: StageReason | null, exitCode: number | null): string {
  if (reason !== 'exit' || exitCode === null) return reason ?? 'the reason is not known';
  // A command that ends well fails its stage by what it leaves alone.
  return exitCode === 0 ? 'its $SERVICE_OUTPUT cannot be read; its log says which line' : `exit code ${exitCode}`;
}

function sayRun(reason: StageReason): string {
  return reason === 'quarantined' ? 'the engine could not go on with the run' : `the run could not begin (${reason})`;
}

/** `1 stage unfinished`, `3 stages unfinished`. */
export function unfinished(stages: number): string {
  return `${stages} stage${stages === 1 ? '' : 's'} unfinished`;
}
