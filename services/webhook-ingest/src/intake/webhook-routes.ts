/**
 * `POST /webhook`: the raw bytes go to the intake, its result or its refusal comes back.
 *
 *  BODIES-1 What bodies hold of this process's memory is bounded. It counts what has come: who announces much and sends nothing holds nothing.
 *  BODIES-2 A client holds a quarter of what is free at most, so however much one sends, or leaves half sent, there is room for another's.
 */
import type { Readable } from 'node:stream';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { FairRoom } from '@penstock/async';
import { Unavailable } from '@penstock/errors';
import { clientKeyOf } from '@penstock/http';
import type { Meter } from '@penstock/telemetry/metrics';
import { BodyTooLarge, InvalidSignature } from '../model/errors.ts';
import { LARGE_BYTES } from '../providers/large-work.ts';
import { isSigned, recognise } from '../providers/recognise.ts';
import { UNSIGNED_BYTES_MAX, type Intake } from './intake.ts';
import { maySendAs, type UidRange } from './local-sender.ts';
import { readBody, type Grow } from './read-body.ts';

/** What GitHub sends at most. */
const BODY_BYTES_MAX = 25 * 1024 * 1024;
/** Of one client alone two of the largest are received or looked at, or hundreds of the usual. */
const BODIES = { shared: 256 * 1024 * 1024, own: 0 };

export interface WebhookRoutesOptions {
  /** The users that stages on this machine run as, where that is not the server's own. */
  readonly stageUids: UidRange | undefined;
  readonly meter: Meter;
}

export async function addWebhookRoutes(
  app: FastifyInstance,
  intake: Intake,
  { stageUids, meter }: WebhookRoutesOptions,
): Promise<void> {
  const bodies = new FairRoom(BODIES);
  const large = new WeakMap<FastifyRequest, Grow>();
  await app.register(async (scope) => {
    // Whatever the content type says: a signature is over bytes, and what they are is looked at behind it.
    scope.removeAllContentTypeParsers();
    scope.addContentTypeParser('*', (request: FastifyRequest, payload: Readable) =>
      readBody(payload, BODY_BYTES_MAX, large.get(request)),
    );
    scope.addHook('onRequest', (request, reply, done) => {
      if (request.is404) return done();
      // Not read at all; one that does not say how long it is is looked at when it is there.
      if (Number(request.headers['content-length']) > UNSIGNED_BYTES_MAX && !isSigned(request.headers)) {
        void tooLarge(reply, new BodyTooLarge(UNSIGNED_BYTES_MAX));
        return;
      }
      if (!isSmall(request)) large.set(request, holdIn(bodies, request, reply));
      done();
    });
    scope.post('/webhook', { bodyLimit: BODY_BYTES_MAX, config: { tier: 'webhook' } }, async (request, reply) => {
      let outcome = 'refused';
      let provider: string | undefined;
      try {
        const body = Buffer.isBuffer(request.body) ? request.body : Buffer.alloc(0);
        const isFromStage = async (): Promise<boolean> =>
          stageUids !== undefined && (await maySendAs(stageUids, request.raw.socket));
        const from = (): string => clientKeyOf(request.clientAddress);
        const { headers } = request;
        const result = await intake.handle({ headers, body, clientGone: () => goneSignal(reply), isFromStage, from });
        outcome = result.status.toLowerCase();
        ({ provider } = result);
        return await reply.send(result);
      } catch (error) {
        if (error instanceof BodyTooLarge) return await tooLarge(reply, error);
        if (!(error instanceof InvalidSignature)) throw error;
        outcome = 'invalid_signature';
        return await reply.code(401).send({
          error: 'invalid_signature',
          message: 'The signature or token of this delivery is missing or wrong.',
        });
      } finally {
        meter.add('penstock_deliveries_total', { provider: provider ?? providerOf(request), outcome });
      }
    });
  });
}

function providerOf({ headers }: FastifyRequest): string {
  try {
    return recognise(headers).provider.name;
  } catch {
    return 'unknown';
  }
}

function goneSignal({ raw }: FastifyReply): AbortSignal {
  const gone = new AbortController();
  const onClose = (): void => {
    if (!raw.writableFinished) gone.abort();
  };
  if (raw.closed) onClose();
  else raw.once('close', onClose);
  return gone.signal;
}

/** The rest of the body is not read: the connection is of no further use. */
function tooLarge(reply: FastifyReply, { message }: BodyTooLarge): FastifyReply {
  return reply.code(413).header('Connection', 'close').send({ error: 'payload_too_large', message });
}

/** Not counted: the number of connections bounds them. Node reads no more than what is announced. */
function isSmall({ headers }: FastifyRequest): boolean {
  return headers['transfer-encoding'] === undefined && Number(headers['content-length'] ?? 0) <= LARGE_BYTES;
}

/** BODIES-1, BODIES-2: until the response is over. */
function holdIn(bodies: FairRoom, { clientAddress }: FastifyRequest, reply: FastifyReply): Grow {
  const who = clientKeyOf(clientAddress);
  let held = 0;
  reply.raw.once('close', () => bodies.giveBack(who, held));
  return (bytes) => {
    if (!bodies.take(who, bytes - held))
      throw new Unavailable('Too many large deliveries are being received; send it again.', { retryAfterSecs: 5 });
    held = bytes;
  };
}
