/** A run as a server tells it, in a list and whole; the names are those of the API. */

export interface ListedRun {
  readonly id: string;
  readonly pipelineName: string;
  readonly status: string;
  readonly startedAt: string;
  readonly finishedAt: string | null;
  readonly repository: string | null;
  readonly ref: string | null;
  readonly commit: string | null;
}

export interface ShownStage {
  readonly name: string;
  readonly status: string;
  readonly startedAt: string | null;
  readonly finishedAt: string | null;
  readonly reason: string | null;
  readonly attempt: number;
  readonly exitCode: number | null;
  readonly after: readonly string[];
}

export interface ShownRun extends ListedRun {
  readonly outcome: string | null;
  readonly reason: string | null;
  readonly stages: readonly ShownStage[];
}
