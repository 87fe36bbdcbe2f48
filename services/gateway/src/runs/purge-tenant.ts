/**
 * Deletes everything of a tenant, by the ways in which a tenant deletes its own: first what makes new runs, then what runs use, then the runs
 * themselves, each by its owner (P34). It owns nothing: what a call has not come to, or a crash has cut off, the next one finds.
 *
 *  TENANTPURGE-1 While runs go on nothing is deleted, unless they are to be cancelled.
 *  TENANTPURGE-2 A call has an end: what is left after `BUDGET_MS`, or while a service is away, is left to the next one, and the receipt says so.
 *  TENANTPURGE-3 Every question names the one tenant; whoever answers it looks at nothing else.
 */
import type { DeleteCacheAnswer, DeleteCacheRequest, ListCachesAnswer, ListCachesRequest } from '@penstock/artifacts';
import type { Bus, ScheduleView } from '@penstock/bus';
import { BadUserInput, Conflict, NotFound, Unavailable } from '@penstock/errors';
import type { ForgetTenantAnswer, ForgetTenantRequest } from '@penstock/extension';
import { callAuth, revocationKeys, userOfTenant, type Revocations } from '@penstock/identity';
import { isEnded, RUN_STATUSES, SERVICE_TENANT, type RunId, type RunView } from '@penstock/run';
import { OwnerRefused, type Owners, type RunReads } from '@penstock/run-client';
import { callService } from '@penstock/service';
import { setTimeout as pause } from 'node:timers/promises';
import { TenantBelongings } from '../people/tenant-belongings.ts';
import { schedulesOf } from './schedules.ts';

/** The broker reads its configuration again meanwhile, where the tenant has runners of its own. */
const FORGET_MS = 30_000;

export interface PurgeOptions {
  readonly bus: Bus;
  readonly owners: Pick<Owners, 'cancel' | 'delete' | 'schedules' | 'partitions'>;
  readonly reads: RunReads;
  readonly revocations: Pick<Revocations, 'note'>;
  /** Default 10 s. */
  readonly budgetMs?: number | undefined;
}

export interface PurgeRequest {
  readonly tenant: string;
  /** Runs that go on are cancelled; else they are in the way. */
  readonly cancel: boolean;
  readonly actor: string;
  readonly ip: string;
  /** Called when it is not refused, before anything is deleted. */
  readonly begins: () => void;
}

/** What one call has deleted. */
export interface PurgeReceipt {
  readonly tenant: string;
  /** Nothing is left of it. */
  readonly isDone: boolean;
  /** What the rest waits for; null: nothing is left. */
  readonly waitsFor: string | null;
  readonly runs: number;
  /** They are deleted once their stages have ended. */
  readonly cancelledRuns: number;
  readonly repositories: number;
  readonly grantsGiven: number;
  readonly schedules: number;
  readonly hooks: number;
  readonly secrets: number;
  readonly tokens: number;
  readonly caches: number;
  readonly deliveries: number;
  readonly extensions: number;
  readonly extensionKeys: number;
}

/** With one question more that has begun by then it is below what clients wait for an answer. */
const BUDGET_MS = 10_000;
const PAGE = 100;
/** Deletions that are asked of owners at once: each waits for a commit and for the store, which they share. */
const TOGETHER = 16;
/** A delivery is processed in milliseconds, unless many wait. */
const SCHEDULES_END_MS = 3_000;
const SCHEDULES_LOOK_MS = 100;
const OPEN_STATUSES = RUN_STATUSES.filter((status) => !isEnded(status));

/** There is no time left in this call. */
class OutOfTime extends Error {}

/** Throws `BadUserInput` for what is no tenant, and `Conflict` where its runs are in the way. */
export async function purgeTenant(options: PurgeOptions, request: PurgeRequest): Promise<PurgeReceipt> {
  const { tenant, cancel } = request;
  if (tenant !== SERVICE_TENANT && userOfTenant(tenant) === undefined)
    throw new BadUserInput(
      `'${tenant.slice(0, 100)}' is no tenant: it is 'user/' with the id of a user, or 'service'.`,
      { field: 'tenant' },
    );
  const purge = new Purge(options, request);
  const live = await purge.liveRuns(1);
  if (live.length > 0 && !cancel)
    throw new Conflict(
      `Runs of '${tenant}' go on, '${live[0]?.id}' for one: wait for their end, or have them cancelled with 'cancel'.`,
    );
  request.begins();
  return await purge.receipt();
}

class Purge {
  readonly #options: PurgeOptions;
  readonly #request: PurgeRequest;
  readonly #belongings: TenantBelongings;
  readonly #until: number;
  readonly #deleted = {
    runs: 0,
    cancelledRuns: 0,
    secrets: 0,
    tokens: 0,
    caches: 0,
    deliveries: 0,
    extensions: 0,
  };

  constructor(options: PurgeOptions, request: PurgeRequest) {
    const { tenant, actor, ip } = request;
    this.#options = options;
    this.#request = request;
    this.#until = performance.now() + (options.budgetMs ?? BUDGET_MS);
    this.#belongings = new TenantBelongings({
      bus: options.bus,
      tenant,
      by: { actor, ip },
      inTime: () => this.#inTime(),
    });
  }

  async receipt(): Promise<PurgeReceipt> {
    const schedules = await this.#schedules();
    const waitsFor = await this.#all().catch((error: unknown) => {
      if (error instanceof OutOfTime) return 'the next call: it was too much for one';
      if (error instanceof Unavailable) return error.message;
      throw error;
    });
    const left =
      waitsFor === null
        ? 0
        : await this.#schedules().then(
            ({ length }) => length,
            () => schedules.length,
          );
    return {
      tenant: this.#request.tenant,
      isDone: waitsFor === null,
      waitsFor,
      schedules: Math.max(0, schedules.length - left),
      ...this.#deleted,
      ...this.#belongings.deleted,
    };
  }

  /** The newest of those that have not ended, at most so many of each status. */
  async liveRuns(limit: number): Promise<RunView[]> {
    const { tenant } = this.#request;
    const found: RunView[] = [];
    for (const status of OPEN_STATUSES)
      found.push(...(await this.#options.reads.newest([tenant], { limit, filter: { status }, withStages: false })));
    return found;
  }

  /** What the rest waits for; null: nothing is left. */
  async #all(): Promise<string | null> {
    const userId = userOfTenant(this.#request.tenant);
    await this.#forgetAtAuth();
    if (userId !== undefined) await this.#belongings.deleteRepositories(userId);
    // Before runs are cancelled: nobody is told of that any more.
    await this.#belongings.deleteHooks();
    await this.#endSchedules();
    await this.#cancelRuns();
    // Those of 'service' sign what comes along with the server, and other public extensions that stay.
    if (userId !== undefined) await this.#belongings.deleteExtensionKeys();
    await this.#forgetAtRegistry();
    await this.#deleteCaches();
    const waiting = await this.#deleteRuns();
    await this.#forgetDeliveries();
    if (waiting > 0) return `${waiting} of its runs, whose stages have not ended yet`;
    if ((await this.#schedulesLeft()) > 0) return 'the ends of its schedules';
    // What was under way may have begun one since.
    const since = await this.#options.reads.newest([this.#request.tenant], { limit: 1, withStages: false });
    return since.length === 0 ? null : 'a run that came meanwhile';
  }

  async #forgetAtAuth(): Promise<void> {
    const { tenant } = this.#request;
    const { secrets, tokens, runnerTokens } = await callAuth(this.#options.bus, 'tenant.forget', { tenant }, FORGET_MS);
    for (const id of tokens) this.#options.revocations.note(revocationKeys.token(id));
    this.#deleted.secrets += secrets;
    this.#deleted.tokens += tokens.length + runnerTokens;
  }

  /** Those of connected repositories end with them. */
  async #endSchedules(): Promise<void> {
    const { tenant } = this.#request;
    if (tenant !== SERVICE_TENANT) return;
    const named = new Map(
      (await this.#schedules()).map(({ provider, repository }) => [
        `${provider}/${repository}`,
        { provider, repository },
      ]),
    );
    for (const name of named.values()) await this.#belongings.ask('schedule.end', name);
  }

  /** Their ends go the way of deliveries: answers how many have not come to theirs. */
  async #schedulesLeft(): Promise<number> {
    const until = performance.now() + SCHEDULES_END_MS;
    for (;;) {
      const { length } = await this.#schedules();
      if (length === 0 || performance.now() > until) return length;
      await pause(SCHEDULES_LOOK_MS);
    }
  }

  async #schedules(): Promise<readonly ScheduleView[]> {
    return await schedulesOf(this.#options.owners, [this.#request.tenant]);
  }

  async #cancelRuns(): Promise<void> {
    const { tenant } = this.#request;
    for (let live = await this.liveRuns(PAGE); live.length > 0; live = await this.liveRuns(PAGE)) {
      const before = this.#deleted.cancelledRuns;
      await eachOf(live, async ({ id }) => {
        this.#inTime();
        if ((await outcomeOf(this.#options.owners.cancel({ runId: id, tenants: [tenant] }))) === 'done')
          this.#deleted.cancelledRuns += 1;
      });
      // They have ended meanwhile, or their owner changes.
      if (this.#deleted.cancelledRuns === before) return;
    }
  }

  /** Counts those that cannot be deleted yet. The newest go first: what repeats another run before that one. */
  async #deleteRuns(): Promise<number> {
    const { tenant, actor: by } = this.#request;
    let [left, before]: [number, RunId | undefined] = [0, undefined];
    for (;;) {
      const page: RunView[] = await this.#options.reads.newest([tenant], { limit: PAGE, before, withStages: false });
      await eachOf(page, async ({ id }) => {
        this.#inTime();
        const outcome = await outcomeOf(this.#options.owners.delete({ runId: id, tenants: [tenant], by }));
        if (outcome === 'done') this.#deleted.runs += 1;
        if (outcome === 'later') left += 1;
      });
      if (page.length < PAGE) return left;
      before = page.at(-1)?.id;
    }
  }

  async #deleteCaches(): Promise<void> {
    const { bus } = this.#options;
    const { tenant } = this.#request;
    for (;;) {
      const { caches } = await callService<ListCachesRequest, ListCachesAnswer>(bus, 'registry', 'cache.list', {
        tenant,
      });
      if (caches.length === 0) return;
      const before = this.#deleted.caches;
      for (const { id } of caches) {
        this.#inTime();
        const request = { tenant, id };
        const { deleted } = await callService<DeleteCacheRequest, DeleteCacheAnswer>(
          bus,
          'registry',
          'cache.delete',
          request,
        );
        if (deleted) this.#deleted.caches += 1;
      }
      if (this.#deleted.caches === before) return;
    }
  }

  async #forgetAtRegistry(): Promise<void> {
    const { bus } = this.#options;
    const { tenant } = this.#request;
    for (let more = true; more;) {
      this.#inTime();
      const { extensions, uploads } = await callService<ForgetTenantRequest, ForgetTenantAnswer>(
        bus,
        'registry',
        'forgetTenant',
        { tenant },
      );
      this.#deleted.extensions += extensions;
      more = extensions + uploads > 0;
    }
  }

  async #forgetDeliveries(): Promise<void> {
    const { tenant } = this.#request;
    for (let more = true; more;) {
      const answer = await this.#belongings.ask('deliveries.forget', { tenant });
      this.#deleted.deliveries += answer.forgotten;
      more = answer.more;
    }
  }

  #inTime(): void {
    if (performance.now() > this.#until) throw new OutOfTime();
  }
}

/** Some at once. After the first failure nothing more is begun, and what is under way is waited for. */
async function eachOf<T>(all: readonly T[], work: (each: T) => Promise<void>): Promise<void> {
  const rest = [...all];
  let failure: { readonly error: unknown } | undefined;
  await Promise.all(
    Array.from({ length: TOGETHER }, async () => {
      for (let each = rest.shift(); each !== undefined && failure === undefined; each = rest.shift())
        await work(each).catch((error: unknown) => {
          failure ??= { error };
        });
    }),
  );
  if (failure !== undefined) throw failure.error;
}

/** `gone`: there is no such run any more, or its owner has let it go; `later`: it cannot be done yet. */
async function outcomeOf(asked: Promise<unknown>): Promise<'done' | 'gone' | 'later'> {
  try {
    await asked;
    return 'done';
  } catch (error) {
    const cause: unknown = error instanceof OwnerRefused ? error.cause : error;
    if (cause instanceof NotFound) return 'gone';
    if (cause instanceof Conflict) return 'later';
    throw cause;
  }
}
