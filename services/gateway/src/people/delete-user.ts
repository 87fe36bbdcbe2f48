/**
 * Deletes a user with what several services have of it. Auth shuts the user out for good first: from then on nothing is added under the
 * id. Auth's own goes last: until then the user is found by its name, and what was cut off is done again.
 */
import type { Bus, IngestCalls } from '@penstock/bus';
import { NotFound, Unavailable } from '@penstock/errors';
import { callAuth, revocationKeys, tenantOfUser, type ForgottenUser, type Revocations } from '@penstock/identity';
import type { ExtensionKeyView } from '@penstock/extension';
import { callService } from '@penstock/service';

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
  const tenant = tenantOfUser(id);
  const by = { actor: request.actor, ip: request.ip };
  const inTime = (): void => {
    if (performance.now() > until)
      throw new Unavailable(
        `The user is shut out for good, and not all is deleted yet: do the same again, by the id ${id}.`,
      );
  };
  const ask = <V extends keyof IngestCalls>(
    verb: V,
    body: IngestCalls[V]['request'],
  ): Promise<IngestCalls[V]['answer']> => {
    inTime();
    return callService(bus, 'webhook-ingest', verb, body);
  };

  let grantsGiven = 0;
  const { repositories } = await ask('connections', { userId: id });
  for (const { id: connection, provider, repository } of repositories) {
    grantsGiven += (await callAuth(bus, 'access.end', { tenant, provider, repository, ...by })).ended;
    await unlessGone(ask('disconnect', { userId: id, id: connection }));
  }
  const { hooks } = await ask('hooks.list', { tenant });
  for (const hook of hooks) await ask('hooks.delete', { tenant, id: hook.id });
  // An administrator asks, whom no tier holds back.
  const caller = { tenant, tier: 'free', isAdmin: true };
  const keys = await callService<unknown, ExtensionKeyView[]>(bus, 'registry', 'keys', { caller });
  for (const key of keys) {
    inTime();
    await unlessGone(callService(bus, 'registry', 'removeKey', { caller, id: key.id }));
  }
  const forgotten = await callAuth(bus, 'user.forget', { userId: id, ...by });
  return {
    ...forgotten,
    id,
    login,
    repositories: repositories.length,
    hooks: hooks.length,
    extensionKeys: keys.length,
    grantsGiven: grantsGiven + forgotten.grantsGiven,
  };
}

/** Somebody else does the same at this moment. */
async function unlessGone(work: Promise<unknown>): Promise<void> {
  try {
    await work;
  } catch (error) {
    if (!(error instanceof NotFound)) throw error;
  }
}
