import type { Bus } from './bus.ts';

export interface LogWriterOptions {
  /** Unacknowledged messages. Default 256. */
  readonly inFlightMax?: number | undefined;
  /** Their bytes. Default 4 MiB. */
  readonly inFlightBytesMax?: number | undefined;
  /** Messages waiting for the window. Default 1,024. */
  readonly waitingMax?: number | undefined;
  /** Of one try. Default 5,000. */
  readonly attemptTimeoutMs?: number | undefined;
}

export interface LogWriter {
  /**
   * Stores the bytes (`encodeChunk`) on `subject` (`subjects.log`), trying until they are acknowledged or the writer is
   * closed. Chunks are sent in the order of the calls; after a failure one may be stored twice, or after its
   * successors: readers go by the offset in the chunk's head. Throws `LogQueueFull`, `MessageTooLarge`, `NotPermitted`.
   */
  publish(subject: string, bytes: Uint8Array): Promise<{ readonly sequence: number }>;
  /** Resolves when another `publish` will not have to wait: the back-pressure. */
  room(): Promise<void>;
  /** Unacknowledged, waiting ones included. */
  readonly pending: number;
  /** What is not acknowledged yet is rejected with `BrokerAway`. */
  close(): void;
}

export declare function createLogWriter(bus: Bus, options?: LogWriterOptions): LogWriter;
