/**
 * From a request to an answer: verify, read, persist, and only then promise anything; then wait for the outcome.
 *
 *  INTAKE-1 Nothing of a body is parsed before it was verified, and nothing is promised before the broker has acknowledged it.
 *  INTAKE-2 A delivery seen before is answered by the first one's run: from the stream for an hour, from the store for a week.
 *  INTAKE-3 What is taken in and not processed is on the broker's disk, and bounded there by count and bytes: of all together by the
 *     stream, of each repository and each user here, so that none fills the room of the others (`room.ts`).
 *  INTAKE-4 Who signs and who does not share nothing: a key (groups, quotas, order) is that of a provider, a repository and a trust.
 *  INTAKE-5 A sender is answered in its time, or 1.5 s later, though the store does not answer: with what is known by then, or that it is to send
 *     it again.
 */
import type { IncomingHttpHeaders } from 'node:http';
import { bootMs, within } from '@penstock/async';
import {
  BrokerAway,
  MessageTooLarge,
  NoResponders,
  openDeliveryLog,
  RequestTimeout,
  StoreRefused,
  type Bus,
  type DeliveryLog,
} from '@penstock/bus';
import type { DeliveryPlace, RepeatedDelivery } from '@penstock/bus';
import { BadUserInput, Forbidden, Unavailable } from '@penstock/errors';
import { tenantOfUser } from '@penstock/identity';
import { GlobList } from '@penstock/pipeline';
import { keyOf, SERVICE_TENANT } from '@penstock/run';
import { StoreError } from '@penstock/store';
import { cloneAddressOf } from '../model/clone-address.ts';
import type { DecidedDelivery, DeliveriesRepository } from '../model/deliveries-repository.ts';
import {
  decodeDelivery,
  encodeDelivery,
  identify,
  runIdOf,
  type Delivery,
  type IngestKeys,
} from '../model/delivery.ts';
import { BodyTooLarge, InvalidSignature, type DeliveryError } from '../model/errors.ts';
import type { Connection } from '../model/connections-repository.ts';
import { isProvedFor } from '../model/proof.ts';
import { placeOf } from '../model/lane-name.ts';
import { resultOf, summaryOfDecision, type WebhookResult } from '../model/outcome.ts';
import type { Outcome, OutcomeWaits } from './outcome-waits.ts';
import type { ClonePolicy, ForkPolicy } from '../model/ports.ts';
import { sha256Of } from '../providers/digest.ts';
import { LARGE_BYTES, nextPiece } from '../providers/large-work.ts';
import type { ProviderName, PushEvent } from '../providers/provider.ts';
import { recognise } from '../providers/recognise.ts';
import type { PushRate } from './push-rate.ts';
import type { PayloadReader } from './payload-reader.ts';
import type { RefusedDeliveries } from './refused-deliveries.ts';
import { BACKLOG_RETRY_SECS, Room, type RoomOptions } from './room.ts';
import { verify, type VerificationOptions, type Verified } from './verification.ts';
import type { Log } from '@penstock/telemetry/log';
import { currentRequest } from '@penstock/telemetry/request';

export interface IntakeOptions {
  readonly bus: Bus;
  readonly deliveries: DeliveriesRepository;
  readonly waits: OutcomeWaits;
  readonly verification: VerificationOptions;
  readonly keys: IngestKeys;
  readonly policy: ClonePolicy;
  /** `ignore`: nothing comes of a pull request from a fork. */
  readonly forks: ForkPolicy;
  /** Of repositories that nobody has connected; undefined: all. */
  readonly repositories?: readonly string[] | undefined;
  readonly waitMs: number;
  /** See `RoomOptions`. */
  readonly waitingMax?: RoomOptions['waitingMax'];
  readonly waiting: RoomOptions['waiting'];
  /** A delivery has been stored in its place. */
  stored(place: DeliveryPlace, sequence: number, bytes: number): void;
  /** See `DeliveryLogOptions`. */
  makeRoom(before: number): Promise<boolean>;
  processedUpTo(from: number, end: number): Promise<number>;
  readonly refused: RefusedDeliveries;
  readonly payloads: PayloadReader;
  readonly log: Log;
  readonly rate: PushRate;
  now(): number;
}

export interface WebhookRequest {
  readonly headers: IncomingHttpHeaders;
  /** Given away: it is empty afterwards where it was large. */
  readonly body: Buffer;
  /** Made where somebody waits: aborted when the sender has gone. */
  readonly clientGone: () => AbortSignal;
  /** Whether a stage may be the sender, or nobody can tell. */
  isFromStage(): Promise<boolean>;
  /** The client, as rate limits tell one from another. */
  from(): string;
  /** It is this tenant's, and counts for no one else. Throws `RateLimited`. */
  countFor(tenant: string): void;
}

/** Who waits for the answer. */
interface Sender extends Pick<WebhookRequest, 'clientGone'> {
  /** Of its time. */
  leftMs(): number;
}

/** Hosts give up after ten seconds, and take no more pushes to who lets them wait too often: a store has this much of that before a push is kept. */
const SEEN_MS = 2_000;
/** What a sender may wait beyond its time for an id that may be promised only then: keeping a delivery, or hearing that it is there, takes some of it. */
const BEYOND_MS = 500;
/** Of a body that nobody has signed. */
export const UNSIGNED_BYTES_MAX = 1024 * 1024;
/** Hosts nest some six deep. */
const UNSIGNED_DEPTH_MAX = 64;

export class Intake {
  readonly #options: IntakeOptions;
  readonly #stream: DeliveryLog;
  readonly #room: Room;
  readonly #repositories: GlobList | null;

  constructor(options: IntakeOptions) {
    this.#options = options;
    this.#stream = openDeliveryLog(options.bus, options);
    this.#room = new Room({ ...options, stream: this.#stream });
    this.#repositories = options.repositories === undefined ? null : new GlobList(options.repositories);
  }

  /** Throws `InvalidSignature`, `BodyTooLarge`, `BadUserInput`, `Forbidden`, `RateLimited`, `Unavailable`. */
  async handle(request: WebhookRequest): Promise<WebhookResult> {
    this.#options.rate.came();
    const until = bootMs() + this.#options.waitMs;
    const leftMs = (): number => Math.max(0, Math.floor(until - bootMs()));
    const { headers, body } = request;
    const { provider, event } = recognise(headers);
    const verified = await verify(provider, headers, body, this.#options.verification);
    if (verified.by === 'connection') request.countFor(tenantOfUser(verified.connection.userId));
    // No host sends an Origin. A page whose name was made to mean this machine (DNS rebinding) cannot leave it out.
    if (verified.by === 'none' && headers.origin !== undefined)
      throw new Forbidden('A delivery that a browser sends must be signed.');
    if (verified.by === 'none') await assertModest(body);
    // Before it is read: a large body is handed over, and then is no longer here.
    const bodySha256 = await sha256Of(body);
    const reading = await this.#options.payloads.read(provider, event, body, () => senderOf(verified, request));
    const refuse = (
      push: Parameters<RefusedDeliveries['add']>[0],
      status: 'Ignored' | 'Failed',
      step: 'event' | 'address' | 'repository' | 'proved',
      detail: string,
      error?: DeliveryError,
    ): WebhookResult => {
      this.#options.refused.add(push, status, step, detail, error);
      return resultOf(push, { accepted: status !== 'Ignored', run_id: null, status, source: 'none', error });
    };
    if (reading.kind === 'ignored') {
      const { repository, ref, commit } = reading;
      return refuse(
        {
          provider: provider.name,
          event,
          repository,
          ref,
          commit,
          ...this.#ownerOf(verified, provider.name, repository),
        },
        'Ignored',
        'event',
        reading.why,
      );
    }
    const { push } = reading;
    const owned = {
      provider: provider.name,
      event,
      repository: push.repository,
      ref: push.ref,
      commit: push.commit,
      ...this.#ownerOf(verified, provider.name, push.repository),
    };
    if (verified.by !== 'connection' && this.#repositories?.includes(push.repository) === false) {
      const message = `the repository '${push.repository}' is not one that this server takes pushes of`;
      return refuse(owned, 'Failed', 'repository', message, { code: 'repository_not_allowed', message });
    }
    if (push.pullRequest?.fork === true && this.#options.forks === 'ignore')
      return refuse(owned, 'Ignored', 'event', 'the pull request is from a fork, and this server ignores those');
    const { policy } = this.#options;
    const address = cloneAddressOf(push, policy);
    if (!address.ok) return refuse(owned, 'Failed', 'address', address.error.message, address.error);
    if (address.isLocal && (await request.isFromStage())) {
      const message = 'a stage cannot have a folder of this machine cloned: the server may read what the stage may not';
      return refuse(owned, 'Failed', 'address', message, { code: 'address_not_allowed', message });
    }
    if (verified.by === 'connection' && !isProvedFor(verified.connection.provedHost, address.url, policy)) {
      const message = `nothing proves that '${push.repository}' is the user's: push the ref ${verified.connection.proofRef}, then call verifyRepository`;
      return refuse(owned, 'Ignored', 'proved', message, { code: 'unproved', message });
    }
    const hostId = provider.deliveryIdOf(headers, push);
    const { clientGone } = request;
    return await this.#take(owned, { hostId, cloneUrl: address.url, push, bodySha256 }, { leftMs, clientGone });
  }

  /** Persists a delivery that repeats another on somebody's wish; a run of its own. `repeats`: which, and of which run. */
  async replay(delivery: Delivery, repeats?: RepeatedDelivery): Promise<Delivery> {
    const now = this.#options.now();
    const { repeats: _earlier, requestId: _id, traceparent: _trace, ...first } = delivery;
    const { id, deliveryId } = identify({
      ...delivery,
      deliveryId: repeats === undefined ? null : `rerun ${repeats.runId}`,
    });
    const again: Delivery = {
      ...first,
      id,
      deliveryId,
      runId: repeats?.runId ?? runIdOf(id, delivery.key, now, this.#options.keys),
      receivedAt: now,
      answeredBy: now,
      replayOf: delivery.id,
      ...requestFields(),
      ...(repeats === undefined ? {} : { repeats: { run: repeats.run, actor: repeats.actor } }),
    };
    await this.#persist(again);
    return again;
  }

  /** From its place in the stream on the repository's schedule starts nothing any more. */
  async connectionEnds({ id: connection, userId, provider, repository, createdAt }: Connection): Promise<void> {
    const tenant = tenantOfUser(userId);
    const owner = { tenant, key: tenant, userId, verified: 'connection' } as const;
    await this.#persistEnd(provider, repository, owner, { connection, createdAt });
  }

  /** The same for one that nobody has connected. */
  async scheduleEnds(provider: ProviderName, repository: string): Promise<void> {
    const owner = this.#ownerOf({ by: 'server' }, provider, repository);
    await this.#persistEnd(provider, repository, owner, { connection: '', createdAt: 0 });
  }

  async #persistEnd(
    provider: ProviderName,
    repository: string,
    owner: Pick<Delivery, 'tenant' | 'key' | 'userId' | 'verified'>,
    ended: NonNullable<Delivery['ended']>,
  ): Promise<void> {
    const now = this.#options.now();
    const { id, deliveryId } = identify({ provider, repository, ...owner, deliveryId: null });
    await this.#persist({
      ...owner,
      id,
      deliveryId,
      runId: runIdOf(id, owner.key, now, this.#options.keys),
      provider,
      event: 'disconnected',
      repository,
      ref: '',
      commit: '',
      cloneUrl: '',
      receivedAt: now,
      answeredBy: now,
      message: null,
      paths: null,
      ended,
      bodySha256: '',
    });
  }

  async #take(
    owned: Pick<
      Delivery,
      'provider' | 'event' | 'repository' | 'ref' | 'commit' | 'tenant' | 'key' | 'userId' | 'verified'
    >,
    given: Pick<Delivery, 'cloneUrl' | 'bodySha256'> & { readonly hostId: string | null; readonly push: PushEvent },
    sender: Sender,
  ): Promise<WebhookResult> {
    const { hostId, push, cloneUrl, bodySha256 } = given;
    const { pullRequest, defaultBranch } = push;
    const { provider, repository, tenant, verified } = owned;
    const { id, deliveryId } = identify({ provider, repository, tenant, verified, pullRequest, deliveryId: hostId });
    const seen = hostId === null ? null : await this.#seenBefore(id);
    const waitMs = this.#options.waits.full ? 0 : sender.leftMs();
    if (seen !== null) return await this.#answerAgain(seen.delivery, seen, waitMs, sender);

    const now = this.#options.now();
    const delivery: Delivery = {
      ...owned,
      cloneUrl,
      bodySha256,
      id,
      deliveryId,
      runId: runIdOf(id, owned.key, now, this.#options.keys),
      receivedAt: now,
      answeredBy: now + waitMs,
      message: push.message,
      paths: push.paths,
      actor: push.actor,
      ...(defaultBranch === undefined ? {} : { defaultBranch }),
      ...(pullRequest === undefined ? {} : { pullRequest }),
      ...requestFields(),
    };
    if (waitMs === 0) {
      const first = await this.#persist(delivery);
      return first.runId === delivery.runId
        ? resultOf(owned, pendingOf(first.runId))
        : await this.#answerAgain(first, null, waitMs, sender);
    }
    const wait = this.#options.waits.begin(delivery);
    try {
      const first = await this.#persist(delivery);
      if (first.runId === delivery.runId) return resultOf(owned, await awaited(wait, waitMs, sender));
      return await this.#answerAgain(first, null, waitMs, sender);
    } finally {
      wait.stop();
    }
  }

  /** Keeps INTAKE-2. */
  async #answerAgain(
    first: Delivery,
    decided: DecidedDelivery | null,
    waitMs: number,
    sender: Sender,
  ): Promise<WebhookResult> {
    if (decided?.decision.kind === 'nothing') {
      const { status = 'Skipped', source, error } = summaryOfDecision(decided.decision);
      return resultOf(first, { run_id: null, status, source, error });
    }
    // Nothing may come of the first one yet, and whether its sender still waits for that answer is the broker's clock to say.
    if (waitMs === 0 && decided === null && first.answeredBy > first.receivedAt)
      throw new Unavailable('Too many deliveries wait for their runs; send it again.');
    if (waitMs === 0) return resultOf(first, pendingOf(first.runId));
    const wait = this.#options.waits.begin(first);
    try {
      // Nothing may come of it for as long as its own sender waits.
      const untilMs = decided === null ? Math.max(waitMs, first.answeredBy - first.receivedAt) : waitMs;
      return resultOf(first, await awaited(wait, untilMs, sender));
    } finally {
      wait.stop();
    }
  }

  /** The delivery that stands: this one, or the first of its id. Keeps INTAKE-1 and INTAKE-3. */
  async #persist(delivery: Delivery): Promise<Delivery> {
    const place = placeOf(delivery);
    const checked = delivery.ended === undefined ? this.#room.check(place) : this.#room.checkRepository(place.lane);
    if (checked !== undefined) await checked;
    try {
      const bytes = encodeDelivery(delivery);
      const persisted = await this.#stream.persist(delivery.id, bytes, place);
      if (persisted.stored) this.#options.stored(place, persisted.sequence, bytes.length);
      const standing = persisted.stored ? delivery : decodeDelivery(persisted.first);
      this.#options.log.debug(
        { deliveryId: delivery.deliveryId, repository: delivery.repository, runId: standing.runId },
        persisted.stored ? 'a delivery is kept' : 'a delivery was there already',
      );
      return standing;
    } catch (error) {
      if (error instanceof MessageTooLarge) throw new BadUserInput('The names in this push are too long to be kept.');
      if (
        error instanceof StoreRefused ||
        error instanceof RequestTimeout ||
        error instanceof BrokerAway ||
        error instanceof NoResponders
      ) {
        this.#options.log.warn(
          { err: error, deliveryId: delivery.deliveryId },
          'a delivery could not be persisted; its sender was asked to send it again',
        );
        throw new Unavailable('The delivery cannot be kept at the moment; send it again.', {
          cause: error,
          ...(error instanceof StoreRefused ? { retryAfterSecs: BACKLOG_RETRY_SECS } : {}),
        });
      }
      throw error;
    }
  }

  /** A store that is away, or does not answer, must not lose a push: one that came before is then recognised when it is processed. */
  async #seenBefore(id: string): Promise<DecidedDelivery | null> {
    try {
      return await within(SEEN_MS, this.#options.deliveries.get(id), () => null);
    } catch (error) {
      if (error instanceof StoreError && error.retryable) return null;
      throw error;
    }
  }

  #ownerOf(
    verified: Verified,
    provider: ProviderName,
    repository: string,
  ): Pick<Delivery, 'tenant' | 'key' | 'userId' | 'verified'> {
    if (verified.by !== 'connection') {
      const scope = `${provider}/${verified.by === 'none' ? 'unsigned' : 'signed'}/${repository}`;
      return {
        tenant: SERVICE_TENANT,
        key: keyOf({ tenant: SERVICE_TENANT, repository: scope, pipelineName: '' }),
        verified: verified.by,
      };
    }
    const { userId, repository: connected } = verified.connection;
    // Whoever has one repository's secret cannot push for another.
    if (connected.toLowerCase() !== repository.toLowerCase()) throw new InvalidSignature();
    const tenant = tenantOfUser(userId);
    return { tenant, key: tenant, userId, verified: 'connection' };
  }
}

/** Waits until the id may be promised, or, where that is too long for this sender, for as long as it has (INTAKE-5). */
async function awaited(
  wait: ReturnType<OutcomeWaits['begin']>,
  promisedMs: number,
  { leftMs, clientGone }: Sender,
): Promise<Outcome> {
  const left = leftMs();
  return promisedMs <= left + BEYOND_MS
    ? await wait.until(promisedMs, clientGone())
    : await wait.until(left, clientGone(), false);
}

/** Whose a body is before anything is read of it. */
function senderOf(verified: Verified, request: WebhookRequest): string {
  return `${verified.by} ${verified.by === 'connection' ? verified.connection.userId : request.from()}`;
}

/** A delivery is processed later, and maybe by another process: it takes along which request it came with. */
function requestFields(): Pick<Delivery, 'requestId' | 'traceparent'> {
  const request = currentRequest();
  if (request === undefined) return {};
  const { id: requestId, traceparent } = request;
  return { requestId, ...(traceparent === undefined ? {} : { traceparent }) };
}

function pendingOf(runId: string): Pick<WebhookResult, 'run_id' | 'status' | 'source'> {
  return { run_id: runId, status: 'Pending', source: 'none' };
}

/** A stranger's body is small and flat before anything is made of it. */
async function assertModest(body: Buffer): Promise<void> {
  if (body.length > UNSIGNED_BYTES_MAX) throw new BodyTooLarge(UNSIGNED_BYTES_MAX);
  if (body.length > LARGE_BYTES) await nextPiece();
  let [depth, isInText] = [0, false];
  for (let at = 0; at < body.length; at += 1) {
    const byte = body[at];
    if (isInText) {
      if (byte === BACKSLASH) at += 1;
      else if (byte === QUOTE) isInText = false;
    } else if (byte === QUOTE) isInText = true;
    else if (byte === BRACE_OPEN || byte === BRACKET_OPEN) depth += 1;
    else if (byte === BRACE_CLOSE || byte === BRACKET_CLOSE) depth -= 1;
    if (depth > UNSIGNED_DEPTH_MAX)
      throw new BadUserInput(`The body is nested deeper than ${UNSIGNED_DEPTH_MAX} levels.`);
  }
}

const [QUOTE, BACKSLASH, BRACE_OPEN, BRACE_CLOSE, BRACKET_OPEN, BRACKET_CLOSE] = [0x22, 0x5c, 0x7b, 0x7d, 0x5b, 0x5d];
