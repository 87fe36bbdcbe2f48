/** Which commit is the head of a pull request, by the delivery that said so. */
export interface PullRequestHead {
  readonly sequence: number;
  readonly commit: string;
}

/** What names a pull request to its key. */
export interface PullRequestRef {
  readonly tenant: string;
  readonly key: string;
  readonly provider: string;
  readonly repository: string;
  readonly ref: string;
  readonly number: number;
}
