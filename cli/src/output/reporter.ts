/** A reporter shows a run: as text for a person, or as JSON for a program. Events come in the order of the event stream. */
import type { LogStreamName, PublicRunEvent } from '@penstock/run/public-events';

export interface Reporter {
  event(event: PublicRunEvent): void;
  /**
   * Whole lines of a stage's output, each with its line end; the bytes are copied. While a returned promise is pending
   * the caller brings no more of that stage.
   */
  lines(stage: string, stream: LogStreamName, bytes: Buffer, timestampMs: number): void | Promise<void>;
  /** Called after the last event: shows what is said at the end. */
  finish(): void;
}
