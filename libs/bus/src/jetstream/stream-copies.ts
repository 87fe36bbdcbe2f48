/**
 * Copies of whole streams, as the broker makes and takes them (`STREAM.SNAPSHOT`, `STREAM.RESTORE`): sequences, subjects and
 * consumers as they are. A copy is made while the stream is written to, and holds all that was acknowledged before it began.
 */
import type { Msg } from '@nats-io/transport-node';
import { BadReply, BrokerAway, RequestTimeout, StoreRefused } from '../contract/errors.ts';
import type { Bus } from '../wire/bus.ts';
import { parseJson } from '../wire/body.ts';
import { wireOf } from '../wire/nats-bus.ts';
import { buckets, FLEET_BUCKET } from '../contract/subjects.ts';
import { api } from './stored.ts';
import { bucketStream } from './streams.ts';

/** What the broker says of the stream; it wants it back when the stream is restored. */
export interface StreamHead {
  readonly config: { readonly name: string; readonly [field: string]: unknown };
  readonly state: unknown;
}

const ANSWER_MS = 30_000;
/** Between two chunks: a broker that reads a block of a large stream from a slow disk takes its time. */
const CHUNK_MS = 60_000;
/** Well below a message's limit, headers included. */
const CHUNK_BYTES = 128 * 1024;
/** Who is in them does not live on elsewhere. */
export const FLEETING_STREAMS: ReadonlySet<string> = new Set(
  [buckets.members, buckets.runners, FLEET_BUCKET].map(bucketStream),
);
/** Of all streams; we have about ten. */
const STREAMS_MAX = 1_024;

/** All streams but memberships, leases and the fleet's: who is in those does not live on elsewhere. */
export async function lastingStreams(bus: Bus): Promise<readonly string[]> {
  const { streams, total } = await api<{ streams: string[] | null; total: number }>(
    wireOf(bus),
    'STREAM.NAMES',
    { offset: 0 },
    ANSWER_MS,
  );
  if (total > STREAMS_MAX) throw new BadReply('STREAM.NAMES', `${total} streams`);
  return (streams ?? []).filter((name) => !FLEETING_STREAMS.has(name));
}

/** Gives the bytes to `write`, one piece after the other, each when the last one is written. Throws what it throws, too. */
export async function copyStream(
  bus: Bus,
  stream: string,
  write: (bytes: Uint8Array) => Promise<void>,
): Promise<StreamHead> {
  const wire = wireOf(bus);
  const subject = wire.newInbox();
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  promise.catch(() => {});
  const silence = setTimeout(() => reject(new RequestTimeout(`STREAM.SNAPSHOT.${stream}`, CHUNK_MS)), CHUNK_MS);
  const onGone = (): void => reject(new BrokerAway('the broker went away while a stream was copied', true));
  let written = Promise.resolve();
  const take = (message: Msg): void => {
    silence.refresh();
    if (message.data.length === 0) {
      const code = message.headers?.code ?? 0;
      if (code === 0 || code === 204) written.then(resolve, reject);
      else reject(new StoreRefused(`STREAM.SNAPSHOT.${stream}`, code, message.headers?.description ?? 'not said why'));
      return;
    }
    written = written.then(async () => {
      await write(message.data);
      // The broker sends so much ahead of what it is told to have come, and no more.
      message.respond();
    });
    written.catch(reject);
  };
  const subscription = wire.connection.subscribe(subject, {
    callback: (error, message) => (error === null ? take(message) : reject(error)),
  });
  wire.events.once('disconnected', onGone);
  try {
    const request = { deliver_subject: subject, chunk_size: CHUNK_BYTES };
    const { config, state } = await api<StreamHead>(wire, `STREAM.SNAPSHOT.${stream}`, request, ANSWER_MS);
    await promise;
    return { config, state };
  } finally {
    clearTimeout(silence);
    wire.events.off('disconnected', onGone);
    subscription.unsubscribe();
  }
}

/**
 * Makes the stream from its copy; there must be none of its name. Its room is bounded anew by whoever sets the streams up, since
 * the machine may be another.
 */
export async function restoreStream(bus: Bus, head: StreamHead, chunks: AsyncIterable<Uint8Array>): Promise<void> {
  const wire = wireOf(bus);
  const { name } = head.config;
  const request = { config: { ...head.config, max_bytes: -1 }, state: head.state };
  const { deliver_subject: subject } = await api<{ deliver_subject: string }>(
    wire,
    `STREAM.RESTORE.${name}`,
    request,
    ANSWER_MS,
  );
  for await (const chunk of chunks) {
    for (let from = 0; from < chunk.length; from += CHUNK_BYTES)
      refused(name, await wire.call(subject, chunk.subarray(from, from + CHUNK_BYTES), undefined, CHUNK_MS));
  }
  refused(name, await wire.call(subject, '', undefined, CHUNK_MS));
}

function refused(stream: string, { data }: Pick<Msg, 'data'>): void {
  if (data.length === 0) return;
  const { error } = parseJson<{ error?: { err_code?: number; code: number; description?: string } }>(data);
  if (error !== undefined)
    throw new StoreRefused(
      `STREAM.RESTORE.${stream}`,
      error.err_code ?? error.code,
      error.description ?? 'not said why',
    );
}
