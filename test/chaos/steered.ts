/** What a load knows of gates and of runs that repeat others: what was wished and what was answered. */

export type Decision = 'approved' | 'rejected';

export interface GateAnswer {
  readonly runId: string;
  readonly stage: string;
  readonly person: string;
  readonly decision: Decision;
  /** How often it was sent until it was answered. */
  sends: number;
  /** `refused`: with CONFLICT, so it is decided otherwise, or over. */
  outcome: 'taken' | 'refused' | 'unknown';
  /** Of the gate, in the answer. */
  status?: string | undefined;
}

export interface RerunWish {
  readonly from?: readonly string[] | undefined;
  readonly onlyFailed?: boolean | undefined;
  readonly inputs?: readonly { readonly key: string; readonly value: string }[] | undefined;
  /** The stage that the file in place of the parent's has another definition of. */
  readonly edited?: string | undefined;
  readonly yaml?: string | undefined;
}

export interface Rerun {
  readonly parent: string;
  readonly wish: RerunWish;
}

export interface RerunAccount {
  /** Answered with CONFLICT. */
  readonly refused: readonly Rerun[];
  /** By run that was over when it was run again: what clients were shown of it before. */
  readonly pictures: ReadonlyMap<string, string>;
}

/** As the API shows a lineage. */
export interface ShownLineage {
  readonly parentRunId: string | null;
  readonly rootRunId: string | null;
  readonly children: readonly string[];
}
