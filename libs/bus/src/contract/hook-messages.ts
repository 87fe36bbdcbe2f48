/** What the gateway asks of the webhook ingest about outgoing webhooks; which tenant it asks for is said with each question. */

export interface HookCalls {
  /** BAD_USER_INPUT: address, events or repository. CONFLICT: the tenant has too many. */
  readonly 'hooks.create': {
    readonly request: {
      readonly tenant: string;
      readonly url: string;
      readonly events: readonly string[];
      readonly repository?: string | undefined;
    };
    readonly answer: HookView & { readonly secret: string };
  };
  /** The oldest first. */
  readonly 'hooks.list': {
    readonly request: { readonly tenant: string };
    readonly answer: { readonly hooks: readonly HookView[] };
  };
  /** False: the tenant has none of this id. */
  readonly 'hooks.delete': {
    readonly request: { readonly tenant: string; readonly id: string };
    readonly answer: { readonly deleted: boolean };
  };
  /** NOT_FOUND: the tenant has no such hook. Those of the newest runs first. */
  readonly 'hooks.deliveries': {
    readonly request: { readonly tenant: string; readonly id: string; readonly limit: number };
    readonly answer: { readonly deliveries: readonly HookDeliveryView[] };
  };
  /** By the id of a delivery. NOT_FOUND: the tenant has none of it, or it is kept no more. */
  readonly 'hooks.redeliver': {
    readonly request: { readonly tenant: string; readonly id: string };
    readonly answer: HookDeliveryView;
  };
  /** Of all tenants: what was given up, the latest first. */
  readonly 'hooks.dead': {
    readonly request: { readonly limit: number };
    readonly answer: { readonly deliveries: readonly DeadHookDelivery[] };
  };
  /** As `hooks.redeliver`, of any tenant. */
  readonly 'hooks.redrive': {
    readonly request: { readonly id: string };
    readonly answer: HookDeliveryView;
  };
}

export interface DeadHookDelivery extends HookDeliveryView {
  readonly tenant: string;
  readonly url: string;
  readonly endedAt: string;
}

export interface HookView {
  readonly id: string;
  readonly url: string;
  readonly events: readonly string[];
  /** `<provider>/<path>`; null: of all the tenant's runs. */
  readonly repository: string | null;
  /** ISO 8601, as the others. */
  readonly createdAt: string;
  /** False: it only failed, and was switched off. */
  readonly active: boolean;
  /** Since when every attempt has failed; null: the last one did not. */
  readonly failingSince: string | null;
  /** Why the last attempt failed. */
  readonly lastError: string | null;
}

export interface HookDeliveryView {
  readonly id: string;
  readonly hook: string;
  readonly event: string;
  readonly runId: string;
  readonly version: number;
  readonly status: 'WAITING' | 'DELIVERED' | 'DEAD';
  readonly attempts: number;
  readonly createdAt: string;
  /** Of the last attempt. */
  readonly attemptedAt: string | null;
  /** Null where it is due at once, or has ended. */
  readonly nextAttemptAt: string | null;
  readonly responseStatus: number | null;
  readonly responseMs: number | null;
  readonly error: string | null;
}

/** Which hooks have something in the outbox. */
export interface HooksWaiting {
  readonly hooks: readonly string[];
}
