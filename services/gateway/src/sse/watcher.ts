/** Who reads what belongs to a run by an address: a stream of its events, a file that it has kept. */
import { Unauthenticated } from '@penstock/errors';
import { bearerTokenOf, requireReader, type Caller, type Callers, type Revocable } from '@penstock/identity';
import type { FastifyRequest } from 'fastify';
import type { People } from '../people/people.ts';
import type { Ticket, Tickets } from './tickets.ts';

export interface WatcherSources {
  readonly callers: Callers;
  readonly tickets: Tickets;
  readonly people: People;
}

export interface Watcher {
  /** Whose runs it may read. */
  readonly tenants: readonly string[];
  /** What it is known by as an approver of runs of others; a ticket is of one run alone. */
  readonly namesOf?: (() => Promise<readonly string[]>) | undefined;
  /** The stream ends when this is revoked, or over. */
  readonly credential: Revocable & Pick<Caller, 'endsAt'>;
  readonly ticket?: Ticket | undefined;
}

/**
 * Says who watches: the header names the caller, or a ticket in the address, or any other token there. `inAddress`: `ticket` takes
 * nothing else there, for an address is handed on and kept where no long-lived token belongs.
 */
export async function watcherOf(
  { callers, tickets, people }: WatcherSources,
  request: FastifyRequest,
  runId: string,
  { inAddress }: { readonly inAddress: 'ticket' | 'token' },
): Promise<Watcher> {
  const { authorization } = request.headers;
  const token = queryText(request, 'token');
  if (bearerTokenOf(authorization) === undefined && token !== undefined) {
    if (tickets.isTicket(token)) {
      const ticket = await tickets.read(token, runId);
      return { tenants: ticket.tenants, credential: ticket.credential, ticket };
    }
    if (inAddress === 'ticket') throw new Unauthenticated();
  }
  const caller = await callers.resolve(authorization, token);
  if (callers.streamsNeedToken && caller.kind === 'anonymous') throw new Unauthenticated();
  return { tenants: requireReader(caller), namesOf: () => people.namesOf(caller), credential: caller };
}

export function queryText(request: FastifyRequest, name: string): string | undefined {
  const value = (request.query as Record<string, unknown>)[name];
  return typeof value === 'string' ? value : undefined;
}
