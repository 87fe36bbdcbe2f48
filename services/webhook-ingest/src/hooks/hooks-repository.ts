/** Hooks as their tenants make, list and delete them. */
import { BadUserInput, Conflict } from '@penstock/errors';
import type { HookView } from '@penstock/bus';
import type { ServerMode } from '@penstock/config';
import { ANNOUNCEMENT_TYPES } from '@penstock/run';
import {
  hookDeliveriesSpec,
  HOOKS_PER_TENANT_MAX,
  hooksSpec,
  hookStatesSpec,
  insertWithin,
  newId,
  type Collection,
  type DocumentOf,
  type DocumentStore,
} from '@penstock/store';
import { openText, sealText, type SealingKeys } from '../model/sealed-text.ts';
import { checkedNames } from '../providers/names.ts';
import { parseHookUrl } from './address.ts';
import { newHookSecret } from './signature.ts';

type HookRow = Omit<DocumentOf<typeof hooksSpec>, 'secret'>;
export type HookState = DocumentOf<typeof hookStatesSpec>;

/** What sending needs of a hook. */
export interface SendingHook {
  readonly id: string;
  readonly tenant: string;
  readonly url: string;
  /** Null: sealed under another `JWT_SECRET`. */
  readonly secret: string | null;
}

interface NewHook {
  readonly tenant: string;
  readonly url: string;
  readonly events: readonly string[];
  readonly repository?: string | undefined;
}

const ID_CHARACTERS_MAX = 100;
const DELETED_AT_ONCE = 500;

export class HooksRepository {
  readonly #hooks: Collection<typeof hooksSpec>;
  readonly #states: Collection<typeof hookStatesSpec>;
  readonly #deliveries: Collection<typeof hookDeliveriesSpec>;
  readonly #keys: SealingKeys;
  readonly #mode: ServerMode;

  /** The store has to be opened with `runCollections` among its collections. */
  constructor(store: DocumentStore, { keys, mode }: { readonly keys: SealingKeys; readonly mode: ServerMode }) {
    this.#hooks = store.collection(hooksSpec);
    this.#states = store.collection(hookStatesSpec);
    this.#deliveries = store.collection(hookDeliveriesSpec);
    this.#keys = keys;
    this.#mode = mode;
  }

  /** The secret is in this answer only. Throws `BadUserInput`, and `Conflict` over the number that a tenant may have. */
  async create(
    { tenant, url, events, repository }: NewHook,
    now: number,
  ): Promise<HookView & { readonly secret: string }> {
    const parsed = parseHookUrl(url, this.#mode);
    if ('refusal' in parsed) throw new BadUserInput(`A webhook cannot go there: ${parsed.refusal}.`, { field: 'url' });
    const wanted = checkedEvents(events);
    if (repository !== undefined) checkRepository(repository);
    const secret = newHookSecret();
    const id = newId(now);
    const row = {
      id,
      tenant,
      url: parsed.href,
      events: wanted.join(','),
      repository: repository ?? '',
      createdAt: now,
    };
    const document = { ...row, secret: sealText(this.#keys, id, secret) };
    const refusal = (): Error =>
      new Conflict(`A tenant has at most ${HOOKS_PER_TENANT_MAX} webhooks: delete one that is not needed any more.`);
    await insertWithin(this.#hooks, document, { where: { tenant }, max: HOOKS_PER_TENANT_MAX, refusal });
    return { ...shown(row, undefined), secret };
  }

  /** The oldest first. */
  async of(tenant: string): Promise<HookView[]> {
    const rows = await this.#rowsOf(tenant);
    const states = rows.length === 0 ? [] : await this.#states.getMany(rows.map(({ id }) => id));
    const byId = new Map(states.map((state) => [state.id, state]));
    return rows.toSorted((a, b) => a.createdAt - b.createdAt).map((row) => shown(row, byId.get(row.id)));
  }

  /** Whether there was one of the tenant's. What waits for it goes with it. */
  async delete(tenant: string, id: string): Promise<boolean> {
    if (!(await this.isOf(tenant, id))) return false;
    // A store may not know that it was this that has deleted it; the audit log is to have it all the same.
    await this.#hooks.delete(id);
    await this.forget(id);
    return true;
  }

  async isOf(tenant: string, id: string): Promise<boolean> {
    if (id === '' || id.length > ID_CHARACTERS_MAX) return false;
    return (await this.#hooks.get(id, { parts: [] }))?.tenant === tenant;
  }

  /** Where those of these ids lead, and whose they are; what was deleted is not among them. */
  async addresses(ids: readonly string[]): Promise<ReadonlyMap<string, Pick<HookRow, 'tenant' | 'url'>>> {
    const rows = ids.length === 0 ? [] : await this.#hooks.getMany([...new Set(ids)], { parts: [] });
    return new Map(rows.map(({ id, tenant, url }) => [id, { tenant, url }]));
  }

  /** Null: it was deleted. */
  async sending(id: string): Promise<SendingHook | null> {
    const row = await this.#hooks.get(id);
    return row === null ? null : { id, tenant: row.tenant, url: row.url, secret: openText(this.#keys, id, row.secret) };
  }

  /** What is left of a hook that is no more. */
  async forget(id: string): Promise<void> {
    await this.#states.delete(id);
    for (const open of [true, false]) {
      let deleted: number;
      do deleted = await this.#deliveries.deleteWhere({ where: { open, hook: id }, limit: DELETED_AT_ONCE });
      while (deleted === DELETED_AT_ONCE);
    }
  }

  async state(id: string): Promise<HookState> {
    return (await this.#states.get(id)) ?? { ...NEW_STATE, id };
  }

  /** Null: somebody else has written it meanwhile, or has forgotten it with its hook. */
  async writeState(state: HookState): Promise<HookState | null> {
    const next = { ...state, revision: state.revision + 1 };
    const isWritten =
      state.revision === 0
        ? (await this.#states.replaceNewer([next])).stale.length === 0
        : await this.#states.replaceStanding(next);
    return isWritten ? next : null;
  }

  async #rowsOf(tenant: string): Promise<HookRow[]> {
    return await this.#hooks.list({ where: { tenant }, limit: 2 * HOOKS_PER_TENANT_MAX, parts: [] });
  }
}

const NEW_STATE = {
  failingSince: 0,
  failures: 0,
  switchedOffAt: 0,
  why: '',
  holder: '',
  revision: 0,
  step: 0,
} as const;

function checkedEvents(events: readonly string[]): readonly string[] {
  const known: readonly string[] = ANNOUNCEMENT_TYPES;
  const unknown = events.find((event) => !known.includes(event));
  if (unknown !== undefined)
    throw new BadUserInput(`There is no event '${unknown.slice(0, 100)}': name some of ${known.join(', ')}.`, {
      field: 'events',
    });
  if (events.length === 0) throw new BadUserInput(`Name at least one event: ${known.join(', ')}.`, { field: 'events' });
  return known.filter((event) => events.includes(event));
}

function checkRepository(repository: string): void {
  const slash = repository.indexOf('/');
  if (slash === -1)
    throw new BadUserInput(`'repository' is <provider>/<path>, as in git_host_a/acme/site.`, { field: 'repository' });
  checkedNames(repository.slice(0, slash), repository.slice(slash + 1));
}

function shown(row: HookRow, state: HookState | undefined): HookView {
  const { failingSince = 0, switchedOffAt = 0, why = '' } = state ?? {};
  return {
    id: row.id,
    url: row.url,
    events: row.events.split(','),
    repository: row.repository === '' ? null : row.repository,
    createdAt: new Date(row.createdAt).toISOString(),
    active: switchedOffAt === 0,
    failingSince: failingSince === 0 ? null : new Date(failingSince).toISOString(),
    lastError: why === '' ? null : why,
  };
}
