/** A thread that makes the search for large values ready: one message is all of them, one answer what the search consists of. */
import { parentPort } from 'node:worker_threads';
import { needlesOf } from './mask-needles.ts';
import { scannerTables, type ScannerTables } from './mask-scanner.ts';

/** Null: there is nothing to look for. */
export type MaskAnswer = ScannerTables | null;

parentPort?.once('message', (values: readonly string[]) => {
  const needles = needlesOf(values);
  const answer: MaskAnswer = needles.length === 0 ? null : scannerTables(needles);
  const { text, starts, parents, buckets, shared, shifts } = answer ?? {};
  const arrays = [text, starts, parents, buckets, shared, shifts].flatMap((array) => array ?? []);
  parentPort?.postMessage(
    answer,
    arrays.map(({ buffer }) => buffer as ArrayBuffer),
  );
});
