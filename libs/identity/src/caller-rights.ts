/**
 * What a caller may do. Each right is asked for by one of these functions, which answer with what the right extends to
 * and throw otherwise: `Unauthenticated` where another kind of credential is needed, `Forbidden` where this one is of the
 * right kind and does not suffice. A personal token's scopes are looked at here, so that nobody can forget to.
 */
import { Forbidden, Unauthenticated } from '@penstock/errors';
import { reachOf } from '@penstock/run';
import { ACCESS_ROLES, type AccessRole } from './access-messages.ts';
import type { Caller, CallerUser, TokenScope } from './callers.ts';

/** The tenants whose runs it may read. */
export function requireReader(caller: Caller): readonly string[] {
  requireScope(caller, 'read');
  if (caller.readTenants.length === 0) throw new Unauthenticated();
  return caller.readTenants;
}

/** The tenants whose runs it may read; none where it may read nothing. */
export function readableTenants(caller: Caller): readonly string[] {
  return hasScope(caller, 'read') ? caller.readTenants : [];
}

/** The tenants whose runs count as its own: for the API key and an anonymous caller, `service`. */
export function requireOwnRuns(caller: Caller): readonly string[] {
  const readable = requireReader(caller);
  return caller.writeTenant === null ? readable : [caller.writeTenant];
}

/** The tenant that what it triggers belongs to. */
export function requireWriter(caller: Caller): string {
  if (caller.writeTenant === null) throw new Unauthenticated();
  requireScope(caller, 'trigger');
  return caller.writeTenant;
}

/** The tenant whose secrets it may set, list and delete. */
export function requireSecretsTenant(caller: Caller): string {
  if (caller.writeTenant === null) throw new Unauthenticated();
  requireScope(caller, 'secrets');
  return caller.writeTenant;
}

/** The tenants whose runs it may cancel. */
export function requireChanger(caller: Caller): readonly string[] {
  const own = requireWriter(caller);
  return caller.changeTenants ?? [own];
}

/** The repositories of others where it has this role, or one above it, as `reachOf` makes them. */
export function grantedReaches(caller: Caller, role: AccessRole): readonly string[] {
  const least = ACCESS_ROLES.indexOf(role);
  return (caller.grants ?? []).filter((grant) => ACCESS_ROLES.indexOf(grant.role) >= least).map(reachOf);
}

/** Whoever presents a credential, of whichever kind. */
export function requireCredential(caller: Caller): void {
  if (caller.kind === 'anonymous') throw new Unauthenticated();
}

/** Who is logged in: neither the API key nor a personal token will do ("JWT required"). */
export function requireUser(caller: Caller): CallerUser {
  if (caller.kind !== 'user' || caller.user === undefined) throw new Unauthenticated();
  return caller.user;
}

/** An admin who is logged in. */
export function requireAdmin(caller: Caller): CallerUser {
  const user = requireUser(caller);
  if (!user.isAdmin) throw new Forbidden('Only administrators may do this (SERVICE_ADMINS names them).');
  return user;
}

/** Who administers the installation: an admin who is logged in, the administration key, in development mode the API key. */
export function requireAdministrator(caller: Caller): void {
  if (caller.administers === true) return;
  if (caller.kind === 'api-key' || caller.kind === 'token')
    throw new Unauthenticated(
      'This is for administrators: present SERVICE_ADMIN_KEY, or log in as an admin; the API key does in development mode only.',
    );
  requireAdmin(caller);
}

/** Whoever runs this server: its API key, or an admin who is logged in. */
export function requireOperator(caller: Caller): void {
  if (caller.kind !== 'api-key') requireAdmin(caller);
}

/** Throws `Forbidden` where a personal token lacks the scope. Other callers have no scopes to lack. */
export function requireScope(caller: Caller, scope: TokenScope): void {
  if (!hasScope(caller, scope)) throw new Forbidden(`This token lacks the scope '${scope}': make one that has it.`);
}

function hasScope(caller: Caller, scope: TokenScope): boolean {
  return caller.kind !== 'token' || caller.scopes?.includes(scope) === true;
}

/** Names the caller as the audit log does. */
export function actorOf(caller: Caller): string {
  if (caller.kind === 'token') return `token/${caller.tokenId ?? ''} of user/${caller.user?.id ?? ''}`;
  return caller.user === undefined ? caller.kind : `user/${caller.user.id}`;
}
