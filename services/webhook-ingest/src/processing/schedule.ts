/**
 * What a push says of its repository's schedule (P28): it is read from the file that the push has brought to the default branch, and
 * told to the owner of its key. The newest file decides, however pushes and the ends of connections pass each other.
 *
 *  SCHEDULE-1 Only who has signed says anything: for a repository that a user has connected, or one that the operator names.
 *  SCHEDULE-2 A file that cannot be read, or is gone, starts nothing any more; what cannot be looked at now says nothing.
 *  SCHEDULE-3 Of a repository whose connection has ended nothing is kept, whatever still waits of it.
 */
import { createHmac } from 'node:crypto';
import type { RunLimits } from '@penstock/config';
import { BadUserInput, QuotaExceeded } from '@penstock/errors';
import type { PipelineDefinition, ResolvedExtension } from '@penstock/pipeline';
import { OwnerRefused, type Owners } from '@penstock/run-client';
import type { Log } from '@penstock/telemetry/log';
import type { ConnectionsRepository } from '../model/connections-repository.ts';
import type { Decision, ScheduleFile, TraceStep } from '../model/decision.ts';
import type { Delivery } from '../model/delivery.ts';

export interface ScheduleSources {
  readonly owners: Pick<Owners, 'setSchedule'>;
  readonly connections: Pick<ConnectionsRepository, 'named' | 'end'>;
  /** Of what ids of runs are made. */
  readonly idKey: Buffer;
  limitsOf(delivery: Delivery): Promise<RunLimits | undefined>;
  readonly log: Log;
}

/** A delivery with its place in `DELIVERIES`. */
export type PlacedDelivery = Delivery & { readonly sequence: number; readonly storedAt: number };

/** What a repository is taken to call its default branch where its host does not say. */
const DEFAULT_BRANCHES: readonly string[] = ['main', 'master'];
const NOTHING: ScheduleFile = { lines: [], source: 'none', yaml: '', extensions: [] };

/** What a push's file is for the schedule of its repository. */
export class PushSchedule {
  readonly #delivery: Delivery;
  readonly #why: string | undefined;
  #file: ScheduleFile | undefined;
  #step: TraceStep | undefined;

  /** `namesRepositories`: whether the operator does (`SERVICE_WEBHOOK_REPOSITORIES`). */
  constructor(delivery: Delivery, namesRepositories: boolean) {
    this.#delivery = delivery;
    this.#why = whyNot(delivery, namesRepositories);
  }

  /** Whether it is asked for its schedule, whatever else comes of it. */
  get isWanted(): boolean {
    return this.#why === undefined && isOfDefaultBranch(this.#delivery);
  }

  /** There is no file, or a bad one. */
  none(): void {
    if (this.isWanted) this.#file = NOTHING;
  }

  read(definition: PipelineDefinition, yaml: string, source: string, extensions: readonly ResolvedExtension[]): void {
    const { schedule: lines } = definition;
    if (this.isWanted) this.#file = lines.length === 0 ? NOTHING : { lines, source, yaml, extensions };
    if (lines.length === 0 || !isOfDefaultBranch(this.#delivery)) return;
    const times = lines.map(({ cron }) => `'${cron}'`).join(', ');
    this.#step = {
      step: 'schedule',
      passed: this.isWanted,
      detail:
        this.#why === undefined ? `it is started at ${times} (UTC)` : `nothing starts it at ${times}: ${this.#why}`,
    };
  }

  addTo(decision: Decision): Decision {
    return {
      ...decision,
      ...(this.#step === undefined ? {} : { trace: [...decision.trace, this.#step] }),
      ...(this.#file === undefined ? {} : { schedule: this.#file }),
    };
  }
}

/** Tells the owner what the decision has found. Answers it with what the owner has refused. Throws `Unavailable`. */
export async function keepSchedule(
  delivery: PlacedDelivery,
  decision: Decision,
  sources: ScheduleSources,
): Promise<Decision> {
  if (decision.schedule === undefined) return decision;
  const { userId = '', provider, repository } = delivery;
  const isEnded =
    delivery.verified === 'connection' && (await sources.connections.named(userId, provider, repository)) === null;
  try {
    await tell(delivery, isEnded ? NOTHING : decision.schedule, sources);
    return decision;
  } catch (error) {
    const refused: unknown = error instanceof OwnerRefused ? error.cause : error;
    if (!(refused instanceof BadUserInput || refused instanceof QuotaExceeded)) throw refused;
    sources.log.warn({ err: refused, repository }, 'the schedule of a repository is not kept');
    const { schedule: _, ...rest } = decision;
    return { ...rest, trace: [...decision.trace, { step: 'schedule', passed: false, detail: refused.message }] };
  }
}

/** The connection of a repository has ended: it is gone from here on, and so is what it wanted to be started. */
export async function endConnection(delivery: PlacedDelivery, sources: ScheduleSources): Promise<void> {
  const { userId = '', ended } = delivery;
  if (ended === undefined) return;
  await sources.connections.end(userId, ended.connection, ended.createdAt);
  await tell(delivery, NOTHING, sources);
}

async function tell(delivery: PlacedDelivery, file: ScheduleFile, sources: ScheduleSources): Promise<void> {
  const { tenant, key, provider, repository, ref, commit, cloneUrl, sequence, storedAt, defaultBranch } = delivery;
  const limits = file.lines.length === 0 ? undefined : await sources.limitsOf(delivery);
  const named = JSON.stringify(['schedule', tenant, provider, repository.toLowerCase()]);
  await sources.owners.setSchedule({
    tenant,
    key,
    provider,
    repository,
    delivery: { sequence, storedAt },
    ref,
    commit,
    cloneUrl,
    source: file.source,
    ...(defaultBranch === undefined ? {} : { defaultBranch }),
    yaml: file.yaml,
    ...(file.extensions.length === 0 ? {} : { extensions: file.extensions }),
    lines: file.lines,
    idKey: createHmac('sha256', sources.idKey).update(named).digest('base64url'),
    ...(limits === undefined ? {} : { limits }),
  });
}

/** Keeps SCHEDULE-1. Undefined: it says what is to be started. */
function whyNot({ verified, replayOf }: Delivery, namesRepositories: boolean): string | undefined {
  if (replayOf !== undefined) return 'a delivery that is sent again changes no schedule';
  if (verified === 'none') return 'the push is not signed';
  if (verified === 'server' && !namesRepositories)
    return 'the repository is not connected, and SERVICE_WEBHOOK_REPOSITORIES does not name it';
  return undefined;
}

function isOfDefaultBranch({ ref, defaultBranch, pullRequest }: Delivery): boolean {
  if (pullRequest !== undefined) return false;
  return (defaultBranch === undefined ? DEFAULT_BRANCHES : [defaultBranch]).some(
    (branch) => ref === `refs/heads/${branch}`,
  );
}
