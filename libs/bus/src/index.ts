export type * from './contract/messages.ts';
export { isSameAttempt } from './contract/attempt-ref.ts';
export type * from './contract/ingest-messages.ts';
export type * from './contract/hook-messages.ts';
export { allowedLabels, type FleetEntry, fleetRunnerId, isFleetRunner } from './contract/fleet.ts';
export { buckets, FLEET_BUCKET, type PeerService, streams, subjects } from './contract/subjects.ts';
export {
  type CloneAnswer,
  type CloneRequest,
  type CloneSecret,
  cloneSecretRemedy,
  hostOfClone,
} from './contract/clone-secret.ts';
export {
  claimsOfSlip,
  readSlip,
  signSlip,
  type Slip,
  type SlipAnswer,
  type SlipContent,
  type SlipRequest,
  type IdTokens,
} from './contract/slip.ts';
export { type Control, controlName, type ControlTarget } from './contract/controls.ts';
export type * from './contract/status-messages.ts';
export { linkThreads } from './wire/thread-line.ts';
export { packText, unpackText } from './wire/packed-text.ts';
export { bytesOfChunk, type Chunk, decodeChunk, encodeChunk, type OutputStream } from './contract/chunk.ts';
export { decodeFrame, encodeFrame, FRAME_BYTES, type StoredChunk } from './contract/log-frame.ts';
export {
  BrokerAway,
  LogQueueFull,
  MessageTooLarge,
  NoResponders,
  NotPermitted,
  RemoteError,
  RequestTimeout,
  StoreRefused,
} from './contract/errors.ts';
export {
  ACT_WITHIN_MS,
  ARCHIVED_KEPT_MS,
  CONTROLS_HEARD_WITHIN_MS,
  CREDIT_MS,
  CREDIT_RENEWED_AFTER_MS,
  CREDIT_SPENT_WITHIN_MS,
  FENCE_MS,
  GONE_WITHOUT_LOG_MS,
  JOB_REPEAT_MS,
  LOGS_READ_WITHIN_MS,
  MEMBERSHIP_MS,
  MEMBERSHIP_RENEWALS,
  RESULT_REPEAT_MS,
  RUN_ID_AHEAD_MS,
  RUNNER_ANSWER_MS,
  RUNNER_LEASE_MS,
  RUNNER_LEASE_MS_MIN,
  RUNNER_LEASE_RENEWALS,
  STOPS_KEPT_MS,
  WATCH_ASK_MS,
} from './contract/protocol-times.ts';
export { type Bus, type BusSubscription, LATER, type Responder } from './wire/bus.ts';
export { connectBus } from './wire/connect.ts';
export { isPublicKey, newKeySeed, publicKeyOf } from './wire/key-seed.ts';
export { connectionOf } from './wire/nats-bus.ts';
export { brokerAddress } from './wire/address.ts';
export { copyStream, lastingStreams, restoreStream, type StreamHead } from './jetstream/stream-copies.ts';
export { bucketAgeMs, deleteBuckets, ensureStreams } from './jetstream/streams.ts';
export {
  type AppendOptions,
  type AppendResult,
  type LogEntry,
  type LogOptions,
  openLog,
  type PartitionLog,
} from './jetstream/partition-log.ts';
export {
  type DeliveryLog,
  type DeliveryPlace,
  openDeliveryLog,
  type StandingDelivery,
} from './jetstream/delivery-log.ts';
export { type DeliveryConsumer, type HeldDelivery, startDeliveryConsumer } from './jetstream/delivery-consumer.ts';
export { BrokerTime } from './jetstream/broker-time.ts';
export { type ClockDifference, clockDifference, type ClockedService } from './jetstream/clock-difference.ts';
export { acquireLease, endLease, type Lease, leaseAtLeader } from './jetstream/lease.ts';
export { type LeaseEvent, type LeaseWatch, watchLeases } from './jetstream/lease-watch.ts';
export { CONTROLS_MAX, putControl, readControls } from './jetstream/control-keys.ts';
export { hearMembers } from './jetstream/member-hearing.ts';
export { putExpiring } from './jetstream/expiring-keys.ts';
export { markLogEnds } from './jetstream/log-marks.ts';
export { purgeLogs } from './jetstream/log-purge.ts';
export { type LookedWrite, lookAtWrites } from './jetstream/looked-writes.ts';
export { createLogWriter, type LogWriter } from './jetstream/log-writer.ts';
export {
  allLastChunks,
  lastChunks,
  type LiveChunk,
  readAllChunks,
  readChunks,
  subscribeLiveChunks,
} from './jetstream/log-reader.ts';
export { chunkBytes, loggedRuns, logsRoom, type LoggedRuns, type LogsRoom } from './jetstream/logged-runs.ts';
export { accountsConfiguration, type BrokerCredential } from './permissions/accounts.ts';
export {
  brokerPermissions,
  CORE_ACCOUNT,
  fleetPermissions,
  inboxPrefixOf,
  runnerUserName,
} from './permissions/permissions.ts';
