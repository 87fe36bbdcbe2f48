/**
 * What auth keeps of logins and of who is shut out. Declared here, since gateways read it too: one that cannot hear of revocations looks
 * there whether a session lives. Written by auth alone.
 */

/** A login that lives; it ends by being deleted. That of a user who is shut out counts for nothing as long. */
export const sessionsSpec = {
  name: 'auth_sessions',
  fields: { userId: 'string', kind: 'string', createdAt: 'integer', expiresAt: 'integer' },
  parts: [],
  indexes: [['userId'], ['expiresAt']],
} as const;

/** The id is the user's. Apart from the user's document: a login at the same moment writes that one. */
export const suspendedUsersSpec = {
  name: 'auth_suspended_users',
  fields: {
    login: 'string',
    suspendedBy: 'string',
    suspendedAt: 'integer',
    /** Not 0 for a user who is, or is being, deleted: it stays for good, with the id alone and `suspendedAt` 0. */
    deletedAt: 'integer',
    /** Always 0: a version has two parts. */
    step: 'integer',
  },
  parts: [],
  indexes: [['suspendedAt']],
  version: ['deletedAt', 'step'],
} as const;
