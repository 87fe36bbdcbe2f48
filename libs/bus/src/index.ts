export type * from './contract/messages.ts';
export type * from './contract/ingest-messages.ts';
export * from './contract/subjects.ts';
export * from './contract/chunk.ts';
export * from './contract/errors.ts';
export * from './contract/protocol-times.ts';
export * from './wire/bus.ts';
export * from './wire/connect.ts';
export { connectionOf } from './wire/nats-bus.ts';
export * from './wire/address.ts';
export * from './jetstream/streams.ts';
export * from './jetstream/partition-log.ts';
export { openDeliveryLog, type DeliveryLog, type Persisted } from './jetstream/delivery-log.ts';
export {
  startDeliveryConsumer,
  type DeliveryConsumer,
  type DeliveryConsumerOptions,
  type HeldDelivery,
} from './jetstream/delivery-consumer.ts';
export * from './jetstream/lease.ts';
export * from './jetstream/lease-watch.ts';
export { putExpiring } from './jetstream/expiring-keys.ts';
export * from './jetstream/log-writer.ts';
export * from './jetstream/log-reader.ts';
export * from './permissions/permissions.ts';
