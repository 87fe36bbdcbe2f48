/**
 * What auth keeps. No token, code or password stands in any of it, only hashes of random values.
 *
 * Documents are inserted and deleted, never changed, but for a user's profile and a token's last use. What two requests
 * may contend for (a code spent, a device approved, a refresh token's successor) is decided by an insert into `auth_marks`.
 */
import { sessionsSpec, suspendedUsersSpec } from '@penstock/identity';
import type { CollectionSpec, DocumentOf } from '@penstock/store';

/** From an account at an identity provider to our user: who inserts first names the user's id. */
export const identitiesSpec = {
  name: 'auth_identities',
  fields: { userId: 'string', createdAt: 'integer' },
  parts: [],
  indexes: [['userId']],
} as const satisfies CollectionSpec;

export const usersSpec = {
  name: 'users',
  fields: {
    email: 'string',
    emailVerified: 'boolean',
    name: 'string',
    login: 'string',
    /** What the user is looked up by: the login in lower case where it is one account's alone, else the verified address; '' for none. */
    loginKey: 'string',
    /** A `ProviderKind`; '' for a user who has not logged in since there are these fields. */
    providerKind: 'string',
    subject: 'string',
    /** The entry of `SERVICE_ALLOWED_LOGINS` that let the user in at the last login; '' where there was no such list. */
    admittedBy: 'string',
    avatarUrl: 'string',
    tier: 'string',
    createdAt: 'integer',
    updatedAt: 'integer',
    /** Always 0: a version has two parts. */
    revision: 'integer',
  },
  parts: [],
  indexes: [['loginKey']],
  version: ['updatedAt', 'revision'],
} as const satisfies CollectionSpec;

export { sessionsSpec, suspendedUsersSpec };

/** The id is the token's hash. */
export const refreshTokensSpec = {
  name: 'auth_refresh_tokens',
  fields: { sessionId: 'string', userId: 'string', createdAt: 'integer', expiresAt: 'integer' },
  parts: [],
  indexes: [['expiresAt']],
} as const satisfies CollectionSpec;

/** The id is the user code; for a flow that the provider runs, the hash of the device code. */
export const deviceCodesSpec = {
  name: 'auth_device_codes',
  fields: {
    deviceHash: 'string',
    /** Who runs the flow: `own`, or `provider`. */
    runBy: 'string',
    /** What asked, as far as it says: shown to the person who is to approve. */
    ip: 'string',
    agent: 'string',
    createdAt: 'integer',
    expiresAt: 'integer',
  },
  parts: [],
  indexes: [['deviceHash'], ['expiresAt']],
} as const satisfies CollectionSpec;

export const personalTokensSpec = {
  name: 'auth_personal_tokens',
  fields: {
    userId: 'string',
    hash: 'string',
    name: 'string',
    scopes: 'string',
    createdAt: 'integer',
    /** 0 for one without an end. */
    expiresAt: 'integer',
  },
  parts: [],
  indexes: [['userId'], ['hash']],
} as const satisfies CollectionSpec;

/** The id is the token's. Apart from it: a use must not bring back a token that was revoked meanwhile. */
export const tokenUsesSpec = {
  name: 'auth_token_uses',
  fields: { lastUsedAt: 'integer', revision: 'integer' },
  parts: [],
  indexes: [],
  version: ['lastUsedAt', 'revision'],
} as const satisfies CollectionSpec;

/** The id is the hash of tenant, repository, pipeline and name: there is one of a name in a scope. */
export const stageSecretsSpec = {
  name: 'auth_secrets',
  fields: {
    tenant: 'string',
    name: 'string',
    /** `<provider>/<path>` as it was given; '' for all. */
    repository: 'string',
    pipeline: 'string',
    /** A JSON list; '' for none. */
    refs: 'string',
    /** Of the master key that `sealed` is under. */
    keyId: 'string',
    createdAt: 'integer',
    updatedAt: 'integer',
    /** Counts how often it was sealed anew under another key since. */
    revision: 'integer',
  },
  /** A JWE. */
  parts: ['sealed'],
  indexes: [['tenant'], ['keyId']],
  version: ['updatedAt', 'revision'],
} as const satisfies CollectionSpec;

/** The id is the secret's. Apart from it: a use must not bring back a secret that was deleted meanwhile. */
export const stageSecretUsesSpec = {
  name: 'auth_secret_uses',
  fields: { lastUsedAt: 'integer', revision: 'integer' },
  parts: [],
  indexes: [],
  version: ['lastUsedAt', 'revision'],
} as const satisfies CollectionSpec;

/** The id names the period in which it signs, and the master key that it was made under. */
export const signingKeysSpec = {
  name: 'auth_signing_keys',
  fields: {
    /** Of 30 days, counted from 1970. */
    period: 'integer',
    /** A JWK. */
    publicKey: 'string',
    /** Of the master key that `sealed` is under. */
    keyId: 'string',
    updatedAt: 'integer',
    /** Counts how often it was sealed anew under another key since. */
    revision: 'integer',
  },
  /** A JWE of the private key. */
  parts: ['sealed'],
  indexes: [['keyId']],
  version: ['updatedAt', 'revision'],
} as const satisfies CollectionSpec;

/** Which process of auth runs with which master keys; the id is the process's, made at its start. */
export const keyHoldersSpec = {
  name: 'auth_key_holders',
  fields: {
    /** Of the key that it seals under; '' without one. */
    first: 'string',
    /** By comma. */
    keys: 'string',
    seenAt: 'integer',
    /** Always 0: a version has two parts. */
    step: 'integer',
  },
  parts: [],
  indexes: [['seenAt']],
  version: ['seenAt', 'step'],
} as const satisfies CollectionSpec;

/** `expiresAt`: 0 for one without an end. */
export const runnerTokensSpec = {
  name: 'auth_runner_tokens',
  fields: {
    hash: 'string',
    name: 'string',
    /** A JSON list. */
    labels: 'string',
    untrusted: 'boolean',
    /** '': for the whole installation. */
    tenant: 'string',
    createdAt: 'integer',
    expiresAt: 'integer',
  },
  parts: [],
  indexes: [['hash'], ['tenant']],
} as const satisfies CollectionSpec;

/** The id is the hash of tenant, repository and login. */
export const accessGrantsSpec = {
  name: 'auth_access',
  fields: {
    tenant: 'string',
    provider: 'string',
    repository: 'string',
    /** Provider and path, in lower case. */
    repositoryKey: 'string',
    /** In lower case. */
    login: 'string',
    /** '' until somebody of this name has logged in. */
    userId: 'string',
    role: 'string',
    grantedBy: 'string',
    grantedAt: 'integer',
    /** When it was given first; 0 in rows of earlier releases. */
    firstAt: 'integer',
    revision: 'integer',
    /** Always 0: a version has two parts. */
    step: 'integer',
  },
  parts: [],
  indexes: [['tenant', 'repositoryKey'], ['login'], ['userId']],
  version: ['revision', 'step'],
} as const satisfies CollectionSpec;

/** Each decides, by being inserted, something that can be decided once. */
export const oneTimeClaimsSpec = {
  name: 'auth_marks',
  fields: { value: 'string', userId: 'string', at: 'integer', expiresAt: 'integer' },
  parts: [],
  indexes: [['expiresAt']],
} as const satisfies CollectionSpec;

export const authCollections: readonly CollectionSpec[] = [
  identitiesSpec,
  usersSpec,
  sessionsSpec,
  refreshTokensSpec,
  deviceCodesSpec,
  personalTokensSpec,
  tokenUsesSpec,
  oneTimeClaimsSpec,
  stageSecretsSpec,
  stageSecretUsesSpec,
  signingKeysSpec,
  keyHoldersSpec,
  runnerTokensSpec,
  accessGrantsSpec,
  suspendedUsersSpec,
];

export type SuspendedUserRow = DocumentOf<typeof suspendedUsersSpec>;
export type UserRow = DocumentOf<typeof usersSpec>;
export type SessionRow = DocumentOf<typeof sessionsSpec>;
export type DeviceRow = DocumentOf<typeof deviceCodesSpec>;
export type OneTimeClaimRow = DocumentOf<typeof oneTimeClaimsSpec>;
