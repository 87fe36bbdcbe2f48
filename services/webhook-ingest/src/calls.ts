/** What other services ask of the ingest: connected repositories, deliveries, replays. */
import { subjects, type Bus, type ConnectionView, type IngestCalls, type IngestVerb } from '@penstock/bus';
import { BadUserInput, NotFound } from '@penstock/errors';
import type { Connection, ConnectionsRepository } from './model/connections-repository.ts';
import { decide, type DecisionSources } from './processing/decide.ts';
import type { DecidedDelivery, DeliveriesRepository } from './model/deliveries-repository.ts';
import { deliveryView } from './model/delivery-view.ts';
import type { Intake } from './intake/intake.ts';
import { providerNamed } from './providers/recognise.ts';

export interface CallsOptions extends DecisionSources {
  readonly bus: Bus;
  readonly deliveries: DeliveriesRepository;
  readonly connections: ConnectionsRepository;
  readonly intake: Intake;
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
  const shown = ({ id, provider, repository, createdAt }: Connection): ConnectionView => ({
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
      if (!dryRun) {
        const again = await options.intake.replay(delivery);
        return deliveryView(again, null, again.runId);
      }
      return deliveryView(delivery, await decide(delivery, options), null);
    },
  };
}

function decidedView({ delivery, decision }: DecidedDelivery): ReturnType<typeof deliveryView> {
  return deliveryView(delivery, decision, decision.kind === 'nothing' ? null : delivery.runId);
}
