/**
 * Deletes a user with what several services have of it. Auth shuts the user out for good first: from then on nothing is added under the
 * id. Auth's own goes last: until then the user is found by its name, and what was cut off is done again.
 */
import type { Bus } from '@penstock/bus';
import { Unavailable } from '@penstock/errors';
import { callAuth, revocationKeys, tenantOfUser, type ForgottenUser, type Revocations } from '@penstock/identity';
import { TenantBelongings } from './tenant-belongings.ts';

export interface DeleteUserOptions {
  readonly bus: Bus;
  readonly revocations: Pick<Revocations, 'note'>;
}

export interface DeletedUser extends ForgottenUser {
  readonly id: string;
  readonly login: string;
  readonly repositories: number;
  readonly hooks: number;
  readonly extensionKeys: number;
}

/** For one request; what is left is for the next. A user may have connected 1,000 repositories, and each is a few questions. */
const BUDGET_MS = 20_000;

/**
 * `login` as `suspendUser` takes it. Counts what this call has deleted. Throws `NotFound`, `BadUserInput` for the caller itself, and
 * `Unavailable` where a service does not answer or there was too much for one request: then it is to be repeated.
 */
export async function deleteUser(
  { bus, revocations }: DeleteUserOptions,
  request: { readonly login: string; readonly actor: string; readonly ip: string },
): Promise<DeletedUser> {
  const { id, login } = await callAuth(bus, 'user.delete', request);
  revocations.note(revocationKeys.suspended(id));
  const until = performance.now() + BUDGET_MS;
  const by = { actor: request.actor, ip: request.ip };
  const inTime = (): void => {
    if (performance.now() > until)
      throw new Unavailable(
        `The user is shut out for good, and not all is deleted yet: do the same again, by the id ${id}.`,
      );
  };
  const belongings = new TenantBelongings({ bus, tenant: tenantOfUser(id), by, inTime });
  await belongings.deleteRepositories(id);
  await belongings.deleteHooks();
  await belongings.deleteExtensionKeys();
  const forgotten = await callAuth(bus, 'user.forget', { userId: id, ...by });
  const { grantsGiven, ...others } = belongings.deleted;
  return { ...forgotten, ...others, id, login, grantsGiven: grantsGiven + forgotten.grantsGiven };
}
