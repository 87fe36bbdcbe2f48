/** Asking auth, with the types of its verbs. */
import type { Bus } from '@penstock/bus';
import { callService } from '@penstock/service';
import type { AuthCalls, AuthVerb } from './auth-messages.ts';

/** Throws the `ServiceError` that auth threw, or `Unavailable` where it does not answer within `deadlineMs` (default 10,000). */
export function callAuth<V extends AuthVerb>(
  bus: Bus,
  verb: V,
  request: AuthCalls[V]['request'],
  deadlineMs?: number,
): Promise<AuthCalls[V]['answer']> {
  return callService<AuthCalls[V]['request'], AuthCalls[V]['answer']>(bus, 'auth', verb, request, deadlineMs);
}
