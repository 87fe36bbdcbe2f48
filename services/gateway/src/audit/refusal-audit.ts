/**
 * Records refusals in the audit log: a token that is not valid, a right that is missing, a rate that is exceeded. It owns the
 * number of records that each address has had in the current minute, so that nobody can fill the log.
 */
import type { AuditLog } from '@penstock/store';
import { bearerTokenOf } from '@penstock/identity';
import { clientKeyOf } from '@penstock/http';
import type { FastifyInstance, FastifyRequest } from 'fastify';

export interface Refusal {
  readonly actor: string;
  readonly action: string;
  readonly target?: string | undefined;
  /** The code of the refusal. */
  readonly outcome: string;
  readonly address: string;
}

const MINUTE_MS = 60_000;
/** So many refusals of one address are recorded a minute; more of them would say the same again. */
const RECORDED_MAX = 20;
/** So many addresses are counted at a time; beyond that nothing more is recorded until the minute ends. */
const ADDRESSES_MAX = 10_000;
/** One record stands for a whole burst. */
const RATE_LIMITED_MAX = 1;

export class RefusalAudit {
  readonly #audit: AuditLog;
  readonly #now: () => number;
  readonly #counts = new Map<string, number>();
  #minute = 0;

  constructor(audit: AuditLog, now: () => number) {
    this.#audit = audit;
    this.#now = now;
  }

  note({ actor, action, target, outcome, address }: Refusal): void {
    const max = outcome === 'RATE_LIMITED' ? RATE_LIMITED_MAX : RECORDED_MAX;
    if (!this.#counted(`${outcome === 'RATE_LIMITED' ? 'rate' : 'refused'} ${clientKeyOf(address)}`, max)) return;
    this.#audit.record({ at: this.#now(), actor, action, target: target ?? '', outcome, ip: address });
  }

  /** Records the refusals of routes; those of GraphQL are recorded where its answer is made. */
  watch(app: FastifyInstance): void {
    app.addHook('onResponse', (request, reply, done) => {
      const outcome = OUTCOMES[reply.statusCode];
      if (outcome !== undefined && (outcome !== 'UNAUTHENTICATED' || presentsToken(request))) {
        const action =
          outcome === 'RATE_LIMITED' ? 'rate-limit' : outcome === 'UNAUTHENTICATED' ? 'authenticate' : 'request';
        // The pattern is recorded and not the path: a token may have got into the path.
        this.note({
          actor: request.actor ?? 'unknown',
          action,
          target: `${request.method} ${request.routeOptions.url ?? ''}`,
          outcome,
          address: request.clientAddress,
        });
      }
      done();
    });
  }

  #counted(key: string, max: number): boolean {
    const minute = Math.floor(this.#now() / MINUTE_MS);
    if (minute !== this.#minute) {
      this.#counts.clear();
      this.#minute = minute;
    }
    const count = this.#counts.get(key) ?? 0;
    if (count >= max || (count === 0 && this.#counts.size >= ADDRESSES_MAX)) return false;
    this.#counts.set(key, count + 1);
    return true;
  }
}

const OUTCOMES: Readonly<Record<number, string>> = { 401: 'UNAUTHENTICATED', 403: 'FORBIDDEN', 429: 'RATE_LIMITED' };

function presentsToken(request: FastifyRequest): boolean {
  return (
    bearerTokenOf(request.headers.authorization) !== undefined ||
    (request.query as Record<string, unknown> | null)?.['token'] !== undefined
  );
}
