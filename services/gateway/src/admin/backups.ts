/** What makes a backup of the whole installation, where one process has all of it (`penstock serve`). */

export interface BackupState {
  readonly folder: string;
  /** Milliseconds since 1970. */
  readonly startedAt: number;
  /** Absent: it is still being made. */
  readonly finishedAt?: number | undefined;
  readonly files?: number | undefined;
  readonly bytes?: number | undefined;
  /** What it has not, in sentences. */
  readonly notes?: readonly string[] | undefined;
  /** Why there is none. */
  readonly problem?: string | undefined;
}

export interface Backups {
  /** The folder is on the server's machine. Throws `Conflict` while another one is being made. */
  begin(folder: string): BackupState;
  /** Null: none since this server was started. */
  last(): BackupState | null;
}
