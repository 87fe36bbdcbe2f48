/** A stage that runs nothing and waits for people: who may decide, how many of them, and until when. Plain JSON values. */

/** `Text`: what its message is, before or after its expressions have values. */
export interface ApprovalDefinition<Text> {
  /** Logins and verified email addresses, as they are written; absent: whoever may cancel the run. */
  readonly approvers?: readonly string[] | undefined;
  /** How many different people have to approve. */
  readonly quorum: number;
  readonly timeoutMs: number;
  /** Whoever has begun the run does not count. */
  readonly preventSelf: boolean;
  /** What they are asked; absent: nothing in particular. */
  readonly message?: Text | undefined;
}
