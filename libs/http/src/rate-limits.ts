/**
 * The three tiers of requests, each with a budget a minute and client address of its own. A route says its tier as
 * `config: { tier }`; the hook here counts before anything of the request's body is read. What a route then finds to be somebody's counts for
 * that one, and for the address no more: many may come from one address, such as that of a git host.
 */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { clientKeyOf, TrustedProxies } from './client-address.ts';
import type { Log } from '@penstock/telemetry/log';
import { RateLimited } from '@penstock/errors';
import { type Decision, RateLimiter } from './rate-limiter.ts';

const REQUEST_TIERS = ['read', 'api', 'webhook'] as const;
export type RequestTier = (typeof REQUEST_TIERS)[number];

/** Requests a minute and client address; 0: no limit. */
export interface RateLimits extends Readonly<Record<RequestTier, number>> {
  /** How many processes share the budgets, this one included: each grants its share. Default 1, and then the limits are exact. */
  readonly shares?: (() => number) | undefined;
}

declare module 'fastify' {
  interface FastifyContextConfig {
    tier?: RequestTier;
    /** It lasts as long as somebody watches. */
    isStream?: true;
  }
  interface FastifyRequest {
    /** The client's address, as far as the proxies on the way are trusted; '' where its socket is gone. */
    readonly clientAddress: string;
    /** Who asks, as the audit log names it; null until a route has found out. */
    actor: string | null;
    /** It is this one's, who has a budget of the same size. Throws `RateLimited`. */
    countFor(whose: string, reply: FastifyReply): void;
  }
}

/**
 * So many times its budget an address may send a minute of what its owners are refused, and that has been read to find them; of more each
 * counts for the address again, which ends the reading.
 */
const REFUSED_TIMES = 10;

/** Of the warning about a header that is not believed: it would come with every request of whoever sends it. */
const WARNING_EVERY_MS = 60_000;

export interface RateLimitOptions {
  readonly limits: RateLimits | undefined;
  readonly trustProxy: readonly string[];
  readonly log: Log;
  /** Milliseconds of a clock that never goes back. */
  readonly now: () => number;
}

/** Throws a RangeError on a bad entry of `trustProxy`. The function that it gives answers false where it has refused, and then has replied. */
export function rateLimiting(
  app: FastifyInstance,
  options: RateLimitOptions,
): (request: FastifyRequest, reply: FastifyReply) => boolean {
  const { limits, log, now } = options;
  const proxies = new TrustedProxies(options.trustProxy);
  const limiters: Readonly<Record<RequestTier, RateLimiter>> = {
    read: new RateLimiter(),
    api: new RateLimiter(),
    webhook: new RateLimiter(),
  };
  /** By tier and whose they are. */
  const owned = new RateLimiter();
  /** By tier and address: what its owner was refused. */
  const refused = new RateLimiter();
  const counted = new WeakMap<FastifyRequest, { readonly client: string; readonly at: number }>();
  let warnedAt = Number.NEGATIVE_INFINITY;

  app.decorateRequest('actor', null);
  app.decorateRequest('clientAddress', {
    getter(this: FastifyRequest) {
      return proxies.clientOf(this.raw.socket.remoteAddress ?? '', forwardedFor(this));
    },
  });

  const warnOfProxy = (request: FastifyRequest): void => {
    if (forwardedFor(request) === undefined || now() - warnedAt < WARNING_EVERY_MS) return;
    const peer = request.raw.socket.remoteAddress ?? '';
    if (proxies.trustsPeer(peer)) return;
    warnedAt = now();
    log.warn(
      { peer },
      'X-Forwarded-For of an address that SERVICE_TRUST_PROXY does not list is ignored; behind a proxy all clients share one rate limit until it is listed',
    );
  };

  const shareOf = (limit: number): number => Math.max(1, Math.floor(limit / Math.max(1, limits?.shares?.() ?? 1)));
  const ask = (limiter: RateLimiter, client: string, at: number, limit: number, reply: FastifyReply): Decision => {
    const decision = limiter.ask(client, shareOf(limit), at);
    reply.header('X-RateLimit-Limit', String(limit)).header('X-RateLimit-Remaining', String(decision.remaining));
    return decision;
  };

  app.decorateRequest('countFor', function countFor(this: FastifyRequest, whose: string, reply: FastifyReply): void {
    const before = counted.get(this);
    if (before === undefined) return;
    counted.delete(this);
    const tier = tierOf(this);
    const limit = limits?.[tier] ?? 0;
    limiters[tier].giveBack(before.client, before.at);
    const { granted, retryAfterSecs } = ask(owned, `${tier} ${whose}`, now(), limit, reply);
    if (granted) return;
    const isMuch = !refused.ask(`${tier} ${before.client}`, shareOf(limit * REFUSED_TIMES), now()).granted;
    if (isMuch) limiters[tier].ask(before.client, shareOf(limit), now());
    throw new RateLimited(
      `Too many requests that are yours: at most ${limit} of this kind a minute. Try again in ${retryAfterSecs} s.`,
      { retryAfter: retryAfterSecs },
    );
  });

  return (request, reply) => {
    warnOfProxy(request);
    const tier = tierOf(request);
    const limit = limits?.[tier] ?? 0;
    if (limit === 0) return true;
    const [client, at] = [clientKeyOf(request.clientAddress), now()];
    const { granted, retryAfterSecs } = ask(limiters[tier], client, at, limit, reply);
    if (granted) {
      counted.set(request, { client, at });
      return true;
    }
    reply
      .code(429)
      .header('Retry-After', String(retryAfterSecs))
      .send({
        error: 'rate_limited',
        message: `Too many requests from this address: at most ${limit} of this kind a minute. Try again in ${retryAfterSecs} s.`,
      });
    return false;
  };
}

/** A route that says none (a mistake) is counted by its method. */
function tierOf(request: FastifyRequest): RequestTier {
  return request.routeOptions.config.tier ?? (request.method === 'GET' || request.method === 'HEAD' ? 'read' : 'api');
}

/** Node joins several headers of this name by commas, in their order. */
function forwardedFor(request: FastifyRequest): string | undefined {
  const header = request.headers['x-forwarded-for'];
  return Array.isArray(header) ? header.join(',') : header;
}
