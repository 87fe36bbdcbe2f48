/**
 * Which sequences a stream has, as its leader says (`deleted_details`). The list of those that are gone becomes longer with each renewal of a lease while the
 * oldest key of the bucket stands: with 10,000 runners' it has 1.7 MB after a lease and its marker's minute, and takes the broker 20 ms. So
 * of a connection one question is under way at a time, and who asks meanwhile shares the next one's answer.
 */
import type { Wire } from '../wire/wire.ts';
import { streamInfo, type StreamInfo } from './stream-info.ts';

interface Asking {
  /** Never rejects. */
  readonly over: Promise<unknown>;
  next?: Promise<StreamInfo> | undefined;
}

/** By connection and stream. */
const asking = new WeakMap<Wire, Map<string, Asking>>();

/** As of after the call. Throws what a request throws. */
export function heldSequences(wire: Wire, stream: string, timeoutMs: number): Promise<StreamInfo> {
  const ofWire = asking.get(wire) ?? new Map<string, Asking>();
  asking.set(wire, ofWire);
  const underWay = ofWire.get(stream);
  if (underWay !== undefined) return (underWay.next ??= underWay.over.then(() => ask(wire, stream, timeoutMs, ofWire)));
  return ask(wire, stream, timeoutMs, ofWire);
}

function ask(wire: Wire, stream: string, timeoutMs: number, ofWire: Map<string, Asking>): Promise<StreamInfo> {
  const answer = streamInfo(wire, stream, timeoutMs, { deleted_details: true });
  const over = answer.then(
    () => {},
    () => {},
  );
  const own: Asking = { over };
  ofWire.set(stream, own);
  // Where another waits for its end, that one's question stands in its place at once.
  void over.then(() => {
    if (own.next === undefined && ofWire.get(stream) === own) ofWire.delete(stream);
  });
  return answer;
}
