/**
 * Deletes what a tenant has with the services beside its runs: connected repositories, outgoing webhooks, keys for extensions. Each
 * thing is counted as soon as it is deleted, so that whoever is cut off knows what was done. Safe to repeat, also by two at once.
 */
import type { Bus, IngestCalls } from '@penstock/bus';
import type { ExtensionKeyView } from '@penstock/extension';
import { NotFound } from '@penstock/errors';
import { callAuth } from '@penstock/identity';
import { callService } from '@penstock/service';

export interface TenantBelongingsOptions {
  readonly bus: Bus;
  readonly tenant: string;
  /** Who deletes them, for the audit log. */
  readonly by: { readonly actor: string; readonly ip: string };
  /** Asked before each question to a service; throws where there is no time for it. */
  readonly inTime: () => void;
}

export class TenantBelongings {
  readonly deleted = { repositories: 0, grantsGiven: 0, hooks: 0, extensionKeys: 0 };
  readonly #options: TenantBelongingsOptions;

  constructor(options: TenantBelongingsOptions) {
    this.#options = options;
  }

  /** With their schedules, and what others were let do in them. */
  async deleteRepositories(userId: string): Promise<void> {
    const { bus, tenant, by } = this.#options;
    const { repositories } = await this.ask('connections', { userId });
    for (const { id, provider, repository } of repositories) {
      this.deleted.grantsGiven += (await callAuth(bus, 'access.end', { tenant, provider, repository, ...by })).ended;
      await unlessGone(this.ask('disconnect', { userId, id }));
      this.deleted.repositories += 1;
    }
  }

  /** With what waits for them. */
  async deleteHooks(): Promise<void> {
    const { tenant } = this.#options;
    const { hooks } = await this.ask('hooks.list', { tenant });
    for (const { id } of hooks) {
      await this.ask('hooks.delete', { tenant, id });
      this.deleted.hooks += 1;
    }
  }

  async deleteExtensionKeys(): Promise<void> {
    const { bus, tenant, inTime } = this.#options;
    // An administrator asks, whom no tier holds back.
    const caller = { tenant, tier: 'free', isAdmin: true };
    for (const { id } of await callService<unknown, ExtensionKeyView[]>(bus, 'registry', 'keys', { caller })) {
      inTime();
      await unlessGone(callService(bus, 'registry', 'removeKey', { caller, id }));
      this.deleted.extensionKeys += 1;
    }
  }

  ask<V extends keyof IngestCalls>(verb: V, body: IngestCalls[V]['request']): Promise<IngestCalls[V]['answer']> {
    this.#options.inTime();
    return callService(this.#options.bus, 'webhook-ingest', verb, body);
  }
}

/** Somebody else does the same at this moment. */
async function unlessGone(work: Promise<unknown>): Promise<void> {
  try {
    await work;
  } catch (error) {
    if (!(error instanceof NotFound)) throw error;
  }
}
