/** What the clients of a load share: they repeat what they do not know the end of, and say what they were answered. */
import type { Api, Outcome } from '../api.ts';
import type { Random } from '../../support/random.ts';
import type { BrokenAnswer } from '../violations.ts';

/** An approver who is logged in. */
export interface Approver {
  /** As the journal names the person. */
  readonly person: string;
  /** As a file names the person. */
  readonly name: string;
  readonly api: Api;
}

type Refusal = Extract<Outcome<unknown>, { readonly ok: false }>;

export interface Client {
  readonly api: Api;
  readonly givenUp: AbortSignal;
  /** Nothing new is begun any more. */
  isStopped(): boolean;
  /** A gateway whose clock is an hour ahead refuses what it takes for old. */
  readonly clocksStepped: boolean;
  report(kind: BrokenAnswer['kind'], runId: string, detail: string): void;
  /** Reports what no client deserves. */
  judge(runId: string, what: string, refusal: Refusal): void;
  beforeRepeat(random: Random): Promise<void>;
}
