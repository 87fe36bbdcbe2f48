/**
 * What the API's thread has read of a file it tells the engine's before it asks for the run: the text alone says what it means, and it is
 * read once.
 *
 * READFILES-1 It goes by the port that requests between the two buses go by: messages of one port arrive in their order, those of two in
 *     any, and a request that came first would have the file read again.
 */
import type { MessagePort } from 'node:worker_threads';
import { adoptForeign, definitionBytes, type ParseResult } from '@penstock/pipeline';

interface ReadFile {
  readonly text: string;
  readonly read: ParseResult;
  /** Of its definition: measured once for both threads. */
  readonly bytes: number | undefined;
}

export function tellOfFile(line: MessagePort, text: string, read: ParseResult): void {
  const message: ReadFile = { text, read, bytes: read.ok ? definitionBytes(read.definition) : undefined };
  line.postMessage(message);
}

/** Until the port is closed. */
export function adoptFiles(line: MessagePort): void {
  line.on('message', (message: Partial<ReadFile>) => {
    const { text, read, bytes } = message;
    if (text !== undefined && read !== undefined) adoptForeign(text, {}, read, bytes);
  });
  line.unref();
}
