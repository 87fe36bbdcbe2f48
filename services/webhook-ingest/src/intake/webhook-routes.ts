/**
 * `POST /webhook`: the raw bytes go to the intake, its result or its refusal comes back.
 *
 *  BODIES-1 What bodies hold of this process's memory is bounded. It counts what has come: who announces much and sends nothing holds nothing.
 *     What is still looked at counts, too, where its sender has hung up.
 *  BODIES-2 A client holds a quarter of what is free at most, so however much one sends, or leaves half sent, there is room for another's.
 */
import type { Readable } from 'node:stream';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { FairRoom } from '@penstock/async';
import { clientKeyOf } from '@penstock/http';
import type { Meter } from '@penstock/telemetry/metrics';
import { BodyTooLarge, InvalidSignature } from '../model/errors.ts';
import type { WebhookResult } from '../model/outcome.ts';
import { LARGE_BYTES } from '../providers/large-work.ts';
import { isSigned, recognise } from '../providers/recognise.ts';
import { HeldBody } from './held-body.ts';
import { UNSIGNED_BYTES_MAX, type Intake } from './intake.ts';
import { maySendAs, type UidRange } from './local-sender.ts';
import { readBody } from './read-body.ts';

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
  const large = new WeakMap<FastifyRequest, HeldBody>();
  await app.register(async (scope) => {
    // Whatever the content type says: a signature is over bytes, and what they are is looked at behind it.
    scope.removeAllContentTypeParsers();
    scope.addContentTypeParser('*', (request: FastifyRequest, payload: Readable) => {
      const held = large.get(request);
      return held === undefined
        ? readBody(payload, BODY_BYTES_MAX)
        : held.during(() => readBody(payload, BODY_BYTES_MAX, (bytes) => held.grow(bytes)));
    });
    scope.addHook('onRequest', (request, reply, done) => {
      if (request.is404) return done();
      // Not read at all; one that does not say how long it is is looked at when it is there.
      if (Number(request.headers['content-length']) > UNSIGNED_BYTES_MAX && !isSigned(request.headers)) {
        void tooLarge(reply, new BodyTooLarge(UNSIGNED_BYTES_MAX));
        return;
      }
      if (!isSmall(request)) large.set(request, new HeldBody(bodies, clientKeyOf(request.clientAddress), reply.raw));
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
        const countFor = (tenant: string): void => request.countFor(tenant, reply);
        const { headers } = request;
        const clientGone = (): AbortSignal => goneSignal(reply);
        const given = { headers, body, clientGone, isFromStage, from, countFor };
        const handle = (): Promise<WebhookResult> => intake.handle(given);
        const result = await (large.get(request)?.during(handle) ?? handle());
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
