/** What a route throws, as an answer: our own refusals word for word, a provider or a store that is away as 503. */
import { RateLimited, Unauthenticated, Unavailable } from '@penstock/errors';
import { StoreUnavailable } from '@penstock/store';
import type { FastifyReply } from 'fastify';
import { AuthRefusal, ProviderRefused, ProviderUnavailable } from '../model/errors.ts';

/** Throws what the server itself answers better. */
export function answerRefusal(error: unknown, reply: FastifyReply): FastifyReply {
  if (error instanceof AuthRefusal)
    return reply.code(error.status).send({ error: error.code, message: error.message, ...error.fields });
  if (error instanceof RateLimited) reply.header('Retry-After', String(error.extensions['retryAfter'] ?? 60));
  throw asServiceError(error);
}

/** Routes and calls of other services use it alike. */
export function asServiceError(error: unknown): unknown {
  if (error instanceof ProviderUnavailable)
    return new Unavailable('The identity provider does not answer; try again.', { cause: error });
  if (error instanceof ProviderRefused)
    return new Unauthenticated('The identity provider refused this login: begin it again.');
  if (error instanceof StoreUnavailable)
    return new Unavailable('The server cannot reach its database at the moment; try again.', { cause: error });
  return error;
}
