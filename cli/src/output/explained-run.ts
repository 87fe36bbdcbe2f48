/** What is known of a run that is explained; the names are those of the API, as far as it has them. Pure. */

export interface ExplainedWait {
  readonly kind: string;
  readonly holder: string | null;
  readonly position: number | null;
  readonly since: string | null;
  readonly etaSecs: number | null;
  readonly message: string;
}

export interface ExplainedStage {
  readonly name: string;
  readonly status: string;
  readonly reason: string | null;
  readonly attempt: number;
  readonly exitCode: number | null;
  readonly waitingOn: readonly ExplainedWait[];
}

export interface FailedStage extends Omit<ExplainedStage, 'waitingOn'> {
  /** The last of its log; none where it wrote nothing, or its log is gone. */
  readonly lastLines: readonly string[];
}

export interface Changed<Value> {
  readonly before: Value;
  readonly now: Value;
}

/** What is another since the last run of the pipeline that succeeded. */
export interface SinceGreen {
  readonly run: string;
  readonly startedAt: string;
  readonly commit: Changed<string | null> | null;
  /** Lines of the file; null: it is the same, or may not be seen. */
  readonly file: { readonly added: number; readonly removed: number } | null;
  /** False: nobody shows the caller the files. */
  readonly isFileKnown: boolean;
  readonly extensions: readonly ({ readonly uses: string } & Changed<string | null>)[];
  readonly inputs: readonly ({ readonly key: string } & Changed<string | null>)[];
  readonly stages: readonly { readonly stage: string; readonly change: string }[];
}

export interface ExplainedRun {
  readonly id: string;
  readonly pipelineName: string;
  readonly status: string;
  readonly startedAt: string;
  readonly finishedAt: string | null;
  readonly reason: string | null;
  readonly verdict: string | null;
  readonly verdictEvidence: readonly string[];
  readonly waitingOn: readonly ExplainedWait[];
  /** Those that wait. */
  readonly stages: readonly ExplainedStage[];
  readonly running: readonly string[];
  readonly failed: readonly FailedStage[];
  /** Undefined: it is not asked, for the run has not failed. Null: no run of the pipeline before it succeeded. */
  readonly sinceGreen?: SinceGreen | null | undefined;
}
