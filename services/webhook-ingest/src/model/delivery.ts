/** A push as it was taken in: what stands in DELIVERIES, and how a delivery is distinguished from another (P24). */
import { hash, hkdfSync, randomUUID } from 'node:crypto';
import { jwtSecretsOf } from '@penstock/config';
import { newRunId } from '@penstock/run';
import { smallHmacOf } from '../providers/digest.ts';
import type { ProviderName, PullRequestEvent } from '../providers/provider.ts';
import type { SealingKeys } from './sealed-text.ts';

/** What showed that the delivery comes from the host: the server's secret, a connected repository's, or nothing. */
type VerifiedBy = 'server' | 'connection' | 'none';

export interface Delivery {
  /** The hash of what identifies it; names its message and its document. */
  readonly id: string;
  /** Fixed when it was persisted. */
  readonly runId: string;
  readonly provider: ProviderName;
  /** As the host calls the event. */
  readonly event: string;
  /** As the host gave it; made by us where it gave none. */
  readonly deliveryId: string;
  readonly repository: string;
  readonly ref: string;
  readonly commit: string;
  readonly cloneUrl: string;
  readonly tenant: string;
  readonly key: string;
  /** Of the user whose connected repository it is. */
  readonly userId?: string | undefined;
  readonly verified: VerifiedBy;
  /** Milliseconds since 1970: persisted, and when its sender has been answered at the latest. */
  readonly receivedAt: number;
  readonly answeredBy: number;
  /** Of the head commit; null: the payload does not say. */
  readonly message: string | null;
  /** What the push changed; null: not known, or too much to be kept. */
  readonly paths: readonly string[] | null;
  /** The login of who pushed; null, or absent from deliveries of releases before the field: not known. */
  readonly actor?: string | null | undefined;
  /** Of the repository, by its short name; absent: not known. */
  readonly defaultBranch?: string | undefined;
  /** Absent: it is a push. */
  readonly pullRequest?: PullRequestEvent | undefined;
  /** It is no push: the connection of the repository has ended. */
  readonly ended?: { readonly connection: string; readonly createdAt: number } | undefined;
  /** Of the body, in hex. */
  readonly bodySha256: string;
  /** The delivery that this one repeats on somebody's wish. */
  readonly replayOf?: string | undefined;
  /** The run without stages that what comes of it repeats, and who wishes that. */
  readonly repeats?: { readonly run: string; readonly actor: string } | undefined;
  /** The request that it came with; absent from deliveries of releases before the field. */
  readonly requestId?: string | undefined;
  /** The host's own trace, W3C Trace Context. */
  readonly traceparent?: string | undefined;
}

/** P24: of the extracted fields, in UTF-8. */
const DELIVERY_BYTES_MAX = 256 * 1024;
const DELIVERY_ID_CHARACTERS_MAX = 500;
/** That is enough to look for `[skip ci]` in, however long the message is. */
const MESSAGE_CHARACTERS_MAX = 16 * 1024;

/** Secrets of the ingest, each made from `JWT_SECRET` for one purpose. */
export interface IngestKeys {
  /** Makes the part of a run's id that is random to everybody else. */
  readonly runIds: Buffer;
  /** AES-256, for the secrets of connected repositories. */
  readonly connections: SealingKeys;
  /** Seals what outgoing webhooks are signed with. */
  readonly hooks: SealingKeys;
}

export function ingestKeys(jwtSecret: string): IngestKeys {
  const [first, ...others] = jwtSecretsOf(jwtSecret);
  const derived = (secret: string, purpose: string): Buffer =>
    Buffer.from(hkdfSync('sha256', secret, '', `penstock webhook-ingest ${purpose}`, 32));
  const sealing = (purpose: string): SealingKeys => [
    derived(first, purpose),
    ...others.map((secret) => derived(secret, purpose)),
  ];
  return {
    runIds: derived(first, 'run ids'),
    connections: sealing('connection secrets'),
    hooks: sealing('hook secrets'),
  };
}

/** Whether its code is that of who may write to the repository, as far as anybody can tell. */
export function isTrustedDelivery({ verified, pullRequest }: Pick<Delivery, 'verified' | 'pullRequest'>): boolean {
  return verified !== 'none' && pullRequest?.fork !== true;
}

export interface DeliveryIdentity {
  readonly provider: ProviderName;
  readonly repository: string;
  /** Two users may have connected one repository: the host's ids are each of its own webhook, or one for both. */
  readonly tenant: string;
  readonly verified: VerifiedBy;
  /** Null: there is none, and every delivery counts. */
  readonly deliveryId: string | null;
  readonly pullRequest?: Pick<PullRequestEvent, 'number'> | undefined;
}

export function identify(identity: DeliveryIdentity): { readonly id: string; readonly deliveryId: string } {
  const deliveryId = shortened(identity.deliveryId ?? randomUUID());
  const { provider, repository, tenant, verified, pullRequest } = identity;
  // Whoever signs nothing may use anybody's id, and must not be taken for who does.
  const trust = verified === 'none' ? ['unsigned'] : [];
  // Each pull request has a lane of its own, and so a subject.
  const number = pullRequest === undefined ? [] : [pullRequest.number];
  const identified = JSON.stringify([provider, repository, tenant, deliveryId, ...trust, ...number]);
  return { id: hash('sha256', identified, 'hex').slice(0, 40), deliveryId };
}

/** Hosts give 36 characters, or three times as many with a ref; what is longer is distinguished just as well by its hash. */
function shortened(deliveryId: string): string {
  return deliveryId.length <= DELIVERY_ID_CHARACTERS_MAX
    ? deliveryId.toWellFormed()
    : hash('sha256', deliveryId, 'hex');
}

/** P24: the time of persistence, the bits of the key, and a value that only this server can tell from the delivery. */
export function runIdOf(id: string, key: string, now: number, keys: IngestKeys): string {
  return newRunId({ now, key, random: Buffer.from(smallHmacOf(keys.runIds, Buffer.from(id)), 'hex') });
}

/** Within the bound, whatever the push holds: its list of paths is given up first (a cut list would filter wrongly). */
export function encodeDelivery(delivery: Delivery): Buffer {
  const message = delivery.message?.slice(0, MESSAGE_CHARACTERS_MAX).toWellFormed() ?? null;
  const bounded = message === delivery.message ? delivery : { ...delivery, message };
  const whole = Buffer.from(JSON.stringify(bounded));
  if (whole.length <= DELIVERY_BYTES_MAX) return whole;
  return Buffer.from(JSON.stringify({ ...bounded, paths: null }));
}

export function decodeDelivery(bytes: Uint8Array): Delivery {
  return JSON.parse(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString()) as Delivery;
}
