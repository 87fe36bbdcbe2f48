/**
 * A login that lives, as auth keeps it. It ends by being deleted. Declared here, since gateways read it too: one that
 * cannot hear of revocations looks there whether a session lives. Written by auth alone.
 */
export const sessionsSpec = {
  name: 'auth_sessions',
  fields: { userId: 'string', kind: 'string', createdAt: 'integer', expiresAt: 'integer' },
  parts: [],
  indexes: [['userId'], ['expiresAt']],
} as const;
