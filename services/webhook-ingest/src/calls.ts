/** What other services ask of the ingest: connected repositories, deliveries, replays. */
import { subjects, type Bus, type ConnectionView, type IngestCalls, type IngestVerb } from '@penstock/bus';
import { BadUserInput, NotFound, Unavailable } from '@penstock/errors';
import type { Connection, ConnectionsRepository } from './model/connections-repository.ts';
import { decide, type DecisionSources } from './processing/decide.ts';
import type { DecidedDelivery, DeliveriesRepository } from './model/deliveries-repository.ts';
import { isAddressable } from './model/clone-address.ts';
import type { Delivery } from './model/delivery.ts';
import { deliveryView } from './model/delivery-view.ts';
import { gitCodeOf } from './model/errors.ts';
import type { ClonePolicy, RefSource } from './model/ports.ts';
import { hostsToAsk, isProvedFor, type HomeHosts } from './model/proof.ts';
import type { Intake } from './intake/intake.ts';
import { providerNamed } from './providers/recognise.ts';

export interface CallsOptions extends DecisionSources {
  readonly bus: Bus;
  readonly deliveries: DeliveriesRepository;
  readonly connections: ConnectionsRepository;
  readonly intake: Intake;
  readonly refs: RefSource;
  readonly policy: ClonePolicy;
  readonly homes: HomeHosts;
  /** Where hosts deliver to. */
  webhookUrl(): string;
  now(): number;
}

type Handlers = {
  readonly [V in IngestVerb]: (request: IngestCalls[V]['request']) => Promise<IngestCalls[V]['answer']>;
};

/** Two names or more, of what no host refuses in one. */
const REPOSITORY = /^[^\s/\p{Cc}]+(?:\/[^\s/\p{Cc}]+)+$/u;
const REPOSITORY_CHARACTERS_MAX = 300;

export function ingestCalls(options: CallsOptions): Handlers {
  const { deliveries, connections, bus } = options;
  const { policy } = options;
  const isProved = ({ provedHost }: Connection): boolean => policy.mode === 'development' || provedHost !== null;
  const shown = (connection: Connection): ConnectionView => ({
    proof: { ref: connection.proofRef },
    proved: isProved(connection),
    ...viewed(connection),
  });
  const viewed = ({ id, provider, repository, createdAt }: Connection): Omit<ConnectionView, 'proof' | 'proved'> => ({
    id,
    provider,
    repository,
    webhookUrl: options.webhookUrl(),
    createdAt: new Date(createdAt).toISOString(),
  });
  const tellOthers = (): void => bus.publish(subjects.connections, {});
  return {
    async connect({ userId, provider: providerName, repository }) {
      const provider = providerNamed(providerName);
      if (provider === undefined) throw new BadUserInput("'provider' must be git_host_a or git_host_b.");
      if (!REPOSITORY.test(repository) || repository.length > REPOSITORY_CHARACTERS_MAX || !repository.isWellFormed())
        throw new BadUserInput("'repository' must be the full path of a repository, as in owner/name.");
      const connected = await connections.connect(userId, provider.name, repository, options.now());
      tellOthers();
      return { ...shown(connected), secret: connected.secret };
    },
    async connections({ userId }) {
      return { repositories: (await connections.of(userId)).map(shown) };
    },
    async disconnect({ userId, id }) {
      if (!(await connections.disconnect(userId, id)))
        throw new NotFound(`There is no connected repository '${id.slice(0, 100)}'.`);
      tellOthers();
      return { disconnected: true };
    },
    async verify({ userId, id }) {
      const connection = await connections.find(userId, id);
      if (connection === null) throw new NotFound(`There is no connected repository '${id.slice(0, 100)}'.`);
      if (isProved(connection)) return shown(connection);
      const host = await hostWithProof(connection, options);
      await connections.prove(connection, host, options.now());
      tellOthers();
      return shown({ ...connection, provedHost: host });
    },
    async deliveries({ tenants, limit }) {
      return { deliveries: (await deliveries.newest(tenants, limit)).map(decidedView) };
    },
    async delivery({ id, tenants }) {
      const found = await deliveries.find(id, tenants);
      return { delivery: found === null ? null : decidedView(found) };
    },
    async replay({ id, tenants, dryRun }) {
      const found = await deliveries.find(id, tenants);
      if (found === null) throw new NotFound(`There is no delivery '${id.slice(0, 100)}'.`);
      const { delivery } = found;
      if (delivery.cloneUrl === '')
        throw new BadUserInput('Nothing can come of this delivery: it was refused before its commit was looked for.');
      if (delivery.verified === 'connection') await assertProved(delivery, options);
      if (!dryRun) {
        const again = await options.intake.replay(delivery);
        return deliveryView(again, null, again.runId);
      }
      return deliveryView(delivery, await decide(delivery, options), null);
    },
  };
}

/** Asks one host after the other. Throws the same for a repository that is not there, or not to be seen, as for a missing ref. */
async function hostWithProof(
  { provider, repository, proofRef }: Connection,
  { refs, policy, homes }: CallsOptions,
): Promise<string> {
  const hosts = isAddressable(repository) ? hostsToAsk(provider, policy, homes) : [];
  let away: unknown;
  for (const host of hosts) {
    try {
      if ((await refs.findRef({ url: `https://${host}/${repository}.git`, ref: proofRef })) !== null) return host;
    } catch (error) {
      const code = gitCodeOf(error);
      if (code === null || code === 'git_unusable') throw error;
      if (code === 'unreachable' || code === 'timeout') away = error;
    }
  }
  if (away !== undefined)
    throw new Unavailable('The git host does not answer at the moment; try again.', { cause: away });
  throw new BadUserInput(
    `The ref ${proofRef} was not found in '${repository}' (${hosts.join(', ') || 'no allowed host'}): push it there, then try again.`,
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
