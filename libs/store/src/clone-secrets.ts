/**
 * Which secret a connected repository is read with, by its name. Written and removed by who keeps connections; read by auth, which
 * gives the value.
 */
import { createHash } from 'node:crypto';
import type { CollectionSpec } from './port.ts';

/** The id is the connection's. */
export const cloneSecretsSpec = {
  name: 'clone_secrets',
  fields: {
    name: 'string',
    /** Of the connection: what one that is gone has left is no other's. */
    createdAt: 'integer',
    /** The host on which the connection was proved; '' while it is not. */
    host: 'string',
    /** Later than what it replaces, whatever the clock says. */
    changedAt: 'integer',
    /** Always 0: a version has two parts. */
    step: 'integer',
  },
  parts: [],
  indexes: [],
  version: ['changedAt', 'step'],
} as const satisfies CollectionSpec;

/** A user connects a repository once; hosts do not tell its names by their case. */
export function connectionIdOf(userId: string, provider: string, repository: string): string {
  const names = JSON.stringify([userId, provider, repository.toLowerCase()]);
  return createHash('sha256').update(names).digest('hex').slice(0, 32);
}
