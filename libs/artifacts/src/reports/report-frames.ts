/** What a process that reads reports is asked, and what it answers behind the tests. */
import type { FolderToRead } from '../reading/child.ts';
import type { LeftOut } from '../reading/walk.ts';

export interface ReportRequest extends FolderToRead {
  readonly patterns: readonly string[];
  readonly filesMax: number;
  /** Of all files that are read. */
  readonly bytesMax: number;
  readonly casesMax: number;
  /** Of the answer. */
  readonly reportBytesMax: number;
}

export interface NotRead {
  /** How many match. */
  readonly files: number;
  readonly hasMoreFiles: boolean;
  /** There are more tests than are kept. */
  readonly isFull: boolean;
  /** The first of those that match and are not in the report. */
  readonly missed: readonly LeftOut[];
  readonly missedCount: number;
}
