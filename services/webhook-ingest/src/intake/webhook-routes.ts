/** `POST /webhook`: the raw bytes go to the intake, its result or its refusal comes back. */
import type { Readable } from 'node:stream';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { Unavailable } from '@penstock/errors';
import type { Meter } from '@penstock/telemetry/metrics';
import { BodyTooLarge, InvalidSignature } from '../model/errors.ts';
import { isSigned, recognise } from '../providers/recognise.ts';
import { UNSIGNED_BYTES_MAX, type Intake } from './intake.ts';
import { maySendAs, type UidRange } from './local-sender.ts';
import { readBody } from './read-body.ts';

/** What GitHub sends at most. */
const BODY_BYTES_MAX = 25 * 1024 * 1024;
/** Bounds all bodies that are being received or looked at: a few large ones, or thousands of the usual. */
const BODIES_BYTES_MAX = 256 * 1024 * 1024;
/** Smaller ones are not counted: the number of connections bounds them. */
const SMALL_BYTES = 64 * 1024;

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
  const bodies = new BodyBudget();
  await app.register(async (scope) => {
    // Whatever the content type says: a signature is over bytes, and what they are is looked at behind it.
    scope.removeAllContentTypeParsers();
    scope.addContentTypeParser('*', (_request: FastifyRequest, payload: Readable) => readBody(payload, BODY_BYTES_MAX));
    scope.addHook('onRequest', (request, reply, done) => {
      if (request.is404) return done();
      // Not read at all; one that does not say how long it is is looked at when it is there.
      if (Number(request.headers['content-length']) > UNSIGNED_BYTES_MAX && !isSigned(request.headers)) {
        void tooLarge(reply, new BodyTooLarge(UNSIGNED_BYTES_MAX));
        return;
      }
      return bodies.reserve(request, reply)
        ? done()
        : done(new Unavailable('Too many large deliveries are being received; send it again.', { retryAfterSecs: 5 }));
    });
    scope.post('/webhook', { bodyLimit: BODY_BYTES_MAX, config: { tier: 'webhook' } }, async (request, reply) => {
      const clientGone = new AbortController();
      const onClose = (): void => {
        if (!reply.raw.writableFinished) clientGone.abort();
      };
      reply.raw.once('close', onClose);
      let outcome = 'refused';
      try {
        const body = Buffer.isBuffer(request.body) ? request.body : Buffer.alloc(0);
        const isFromStage = async (): Promise<boolean> =>
          stageUids !== undefined && (await maySendAs(stageUids, request.raw.socket));
        const { headers } = request;
        const result = await intake.handle({ headers, body, clientGone: clientGone.signal, isFromStage });
        outcome = result.status.toLowerCase();
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
        reply.raw.off('close', onClose);
        meter.add('penstock_deliveries_total', { provider: providerOf(request), outcome });
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

/** The rest of the body is not read: the connection is of no further use. */
function tooLarge(reply: FastifyReply, { message }: BodyTooLarge): FastifyReply {
  return reply.code(413).header('Connection', 'close').send({ error: 'payload_too_large', message });
}

class BodyBudget {
  #left = BODIES_BYTES_MAX;

  /** Until the response is over. False: not now. */
  reserve(request: FastifyRequest, reply: FastifyReply): boolean {
    const announced = Number(request.headers['content-length']);
    // Without a length it may be as long as any; one that is too long is refused without being read.
    const bytes =
      Number.isFinite(announced) && request.headers['transfer-encoding'] === undefined ? announced : BODY_BYTES_MAX;
    if (bytes <= SMALL_BYTES || bytes > BODY_BYTES_MAX) return true;
    if (bytes > this.#left) return false;
    this.#left -= bytes;
    reply.raw.once('close', () => (this.#left += bytes));
    return true;
  }
}
