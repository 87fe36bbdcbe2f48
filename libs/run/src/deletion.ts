/** The end of a closed run's life: nobody reads it again, and nothing makes it anew (P34). It is no event of the run's own stream. */
export interface RunDeleted {
  readonly type: 'run_deleted';
  readonly at: number;
  /** Who: a login, an email address, `api-key`, or `retention`. */
  readonly by: string;
}
