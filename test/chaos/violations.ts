/** What an account can be found to break. */
export type ViolationKind =
  /** Accepted, and not in the journal. */
  | 'lost'
  /** Accepted and never ended, or with attempts that nobody ever confirmed gone. */
  | 'unfinished'
  /** An attempt that ran twice, ran ungranted, or ran after its stage had ended. */
  | 'doubled'
  /** Two attempts of a stage, or two runs of a group, lived at a time. */
  | 'overlapping'
  /** An attempt that lived after it was reported gone, or a result taken after the end. */
  | 'late'
  /** A stage that started before what it comes after had ended. */
  | 'order'
  /** The engine says one thing, the stage's own evidence another. */
  | 'untrue'
  | 'journal'
  | 'document'
  /** A watcher missed something, heard it twice, or was left hanging. */
  | 'stream'
  /** A client was answered what did not hold. */
  | 'answer'
  /** A process of a stage that lives on. */
  | 'orphan';

export interface Violation {
  readonly kind: ViolationKind;
  readonly runId: string;
  readonly detail: string;
}

/** Of one run. */
export type Report = (kind: ViolationKind, detail: string) => void;

export type ReportRun = (kind: ViolationKind, runId: string, detail: string) => void;

/** A promise of the API that a client saw broken. */
export interface BrokenAnswer {
  readonly kind: 'not found' | 'went back' | 'refused' | 'internal';
  readonly runId: string;
  readonly detail: string;
}
