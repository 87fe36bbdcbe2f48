/** What other services ask of the ingest: connected repositories, deliveries, replays. */
import { tenantOfUser } from '@penstock/identity';
import {
  cloneSecretRemedy,
  subjects,
  type Bus,
  type ConnectionView,
  type HookCalls,
  type IngestCalls,
  type IngestVerb,
} from '@penstock/bus';
import { BadUserInput, NotFound } from '@penstock/errors';
import { shownIdOf, type Connection, type NamedRepository } from './model/connections-repository.ts';
import { decide } from './processing/decide.ts';
import { orBadInput, repositoryFile, type RepositoryFileSources } from './processing/repository-file.ts';
import { findInPlaces } from './processing/ref-search.ts';
import type { DecidedDelivery } from './model/deliveries-repository.ts';
import { isAddressable } from './model/clone-address.ts';
import type { Delivery } from './model/delivery.ts';
import { deliveryView } from './model/delivery-view.ts';
import { hostsToAsk, isProvedFor, placeToShow } from './model/proof.ts';
import type { Intake } from './intake/intake.ts';
import { checkedNames, checkedSecretName } from './providers/names.ts';

export interface CallsOptions extends RepositoryFileSources {
  readonly bus: Bus;
  readonly intake: Intake;
  /** Where hosts deliver to. */
  webhookUrl(): string;
  now(): number;
}

const FORGOTTEN_AT_ONCE = 100;

type Handlers = {
  readonly [V in Exclude<IngestVerb, keyof HookCalls>]: (
    request: IngestCalls[V]['request'],
  ) => Promise<IngestCalls[V]['answer']>;
};

export function ingestCalls(options: CallsOptions): Handlers {
  const { deliveries, connections, bus } = options;
  const { policy } = options;
  const isProved = ({ provedHost }: Connection): boolean => policy.mode === 'development' || provedHost !== null;
  const shown = (connection: Connection): ConnectionView => ({
    proof: { ref: connection.proofRef },
    proved: isProved(connection),
    ...viewed(connection),
  });
  const viewed = (connection: Connection): Omit<ConnectionView, 'proof' | 'proved'> => {
    const { provider, repository, createdAt, cloneSecret } = connection;
    return {
      id: shownIdOf(connection),
      provider,
      repository,
      webhookUrl: options.webhookUrl(),
      createdAt: new Date(createdAt).toISOString(),
      cloneSecret,
    };
  };
  const tellOthers = ({ provider, repository }: Connection): void =>
    bus.publish<NamedRepository>(subjects.connections, { provider, repository });
  return {
    async connect({ userId, provider: providerName, repository, cloneSecret: name }) {
      const provider = checkedNames(providerName, repository);
      const cloneSecret = name === undefined ? null : checkedSecretName('cloneSecret', name);
      const connected = await connections.connect(userId, provider, repository, {
        now: options.now(),
        cloneSecret,
        haveToBeProved: policy.mode !== 'development',
      });
      tellOthers(connected);
      return { ...shown(connected), secret: connected.secret };
    },
    async 'clone-secret'({ userId, id, name }) {
      const connection = await connections.shownAs(userId, id);
      if (connection === null) throw notConnected(id);
      const cloneSecret = name === null ? null : checkedSecretName('name', name);
      const changed = await connections.setCloneSecret(connection, cloneSecret, options.now());
      tellOthers(changed);
      return shown(changed);
    },
    async connections({ userId }) {
      return { repositories: (await connections.of(userId)).map(shown) };
    },
    async disconnect({ userId, id }) {
      const connection = await connections.shownAs(userId, id);
      if (connection === null) throw notConnected(id);
      // First: whatever becomes of this process, it ends the connection too.
      await options.intake.connectionEnds(connection);
      // And it alone: the user may have ended it by another request too, and have connected the repository anew.
      await connections.end(userId, connection.id, connection.createdAt);
      tellOthers(connection);
      return { disconnected: true };
    },
    async verify({ userId, id }) {
      const connection = await connections.shownAs(userId, id);
      if (connection === null) throw notConnected(id);
      if (isProved(connection)) return shown(connection);
      const host = await hostWithProof(connection, options);
      await connections.prove(connection, host, options.now());
      tellOthers(connection);
      return shown({ ...connection, provedHost: host });
    },
    async 'schedule.end'({ provider, repository }) {
      await options.intake.scheduleEnds(checkedNames(provider, repository), repository);
      return { ended: true };
    },
    async 'deliveries.forget'({ tenant }) {
      if (tenant === '') throw new BadUserInput("'tenant' is empty.");
      return await deliveries.forget(tenant, FORGOTTEN_AT_ONCE);
    },
    async deliveries({ tenants, limit }) {
      return { deliveries: (await deliveries.newest(tenants, limit)).map(decidedView) };
    },
    async delivery({ id, tenants }) {
      const found = await deliveries.find(id, tenants);
      return { delivery: found === null ? null : decidedView(found) };
    },
    async replay({ id, tenants, dryRun, repeats }) {
      const found = await deliveries.find(id, tenants);
      if (found === null) throw new NotFound(`There is no delivery '${id.slice(0, 100)}'.`);
      const { delivery } = found;
      if (delivery.cloneUrl === '')
        throw new BadUserInput('Nothing can come of this delivery: it was refused before its commit was looked for.');
      if (delivery.verified === 'connection') await assertProved(delivery, options);
      if (!dryRun) {
        const again = await options.intake.replay(delivery, repeats);
        return deliveryView(again, null, again.runId);
      }
      return deliveryView(delivery, await decide(delivery, options), null);
    },
    file: (request) => repositoryFile(request, options),
  };
}

function notConnected(id: string): NotFound {
  return new NotFound(`There is no connected repository '${id.slice(0, 100)}'.`);
}

/** Asks one host after the other. Throws the same for a repository that is not there, or not to be seen, as for a missing ref. */
async function hostWithProof(
  { userId, provider, repository, proofRef, cloneSecret }: Connection,
  { refs, policy, homes, clones }: CallsOptions,
): Promise<string> {
  const allowed = isAddressable(repository) ? hostsToAsk(provider, policy, homes) : [];
  const hosts = cloneSecret === null ? allowed : placeToShow(allowed);
  const places = hosts.map((host) => ({ host, url: `https://${host}/${repository}.git` }));
  const [only] = places;
  const own =
    cloneSecret === null || only === undefined
      ? undefined
      : await orBadInput(() => clones.of({ userId, provider, repository, cloneUrl: only.url }));
  const key = tenantOfUser(userId);
  const found = await findInPlaces(places, [proofRef], refs, { key, credential: own?.credential });
  if (found !== null) return found.place.host;
  const remedy = own === undefined ? '' : `; ${cloneSecretRemedy(own.name)}`;
  throw new BadUserInput(
    `The ref ${proofRef} was not found in '${repository}' (${hosts.join(', ') || 'no allowed host'}): push it there, then try again${remedy}.`,
  );
}

/** A connection that was ended, or proved for another host, replays nothing. */
async function assertProved(delivery: Delivery, { connections, policy }: CallsOptions): Promise<void> {
  const { userId = '', provider, repository, cloneUrl } = delivery;
  const connection = await connections.named(userId, provider, repository);
  if (policy.mode === 'production' && !isProvedFor(connection?.provedHost ?? null, cloneUrl, policy))
    throw new BadUserInput('The repository of this delivery is not connected, or not proved: call verifyRepository.');
}

function decidedView({ delivery, decision }: DecidedDelivery): ReturnType<typeof deliveryView> {
  return deliveryView(delivery, decision, decision.kind === 'nothing' ? null : delivery.runId);
}
