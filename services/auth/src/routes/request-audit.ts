/** What the audit log records of requests: who, what, from where. Never a token, a code or a secret. */
import type { AuditLog } from '@penstock/store';
import type { FastifyRequest } from 'fastify';

export interface RequestAudit {
  login(request: FastifyRequest, userId: string, sessionId: string, kind: string): void;
  /** Somebody who did not prove to be anybody. */
  refused(request: FastifyRequest, action: string, outcome: string): void;
  done(request: FastifyRequest, userId: string, action: string, target: string): void;
}

export function requestAudit(audit: AuditLog, now: () => number): RequestAudit {
  const from = (request: FastifyRequest): { readonly at: number; readonly ip: string } => ({
    at: now(),
    ip: request.clientAddress,
  });
  return {
    login: (request, userId, sessionId, kind) =>
      audit.record({
        ...from(request),
        actor: `user/${userId}`,
        action: `login.${kind}`,
        target: `session/${sessionId}`,
        outcome: 'ok',
      }),
    refused: (request, action, outcome) =>
      audit.record({ ...from(request), actor: 'anonymous', action, target: '', outcome }),
    done: (request, userId, action, target) =>
      audit.record({ ...from(request), actor: `user/${userId}`, action, target, outcome: 'ok' }),
  };
}
