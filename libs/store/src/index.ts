export type * from './port.ts';
export * from './errors.ts';
export * from './health.ts';
export {
  auditCollections,
  AuditRepository,
  noAudit,
  type AuditEntry,
  type AuditLog,
  type AuditReader,
} from './audit-log.ts';
export {
  decodeRun,
  encodeRun,
  encodeRunInSteps,
  runCollections,
  type EncodedEvents,
  type EncodedRun,
  type RunDocument,
  type UnreadableRun,
} from './run-documents.ts';
export { StoredRetention, type OldRun, type RetentionLedger } from './retention.ts';
export { DeletedRuns, type StoredStanding, type Tombstone } from './deleted-runs.ts';
export {
  type ArchivedFrame,
  type ArchivedHead,
  type ArchivedLog,
  LogArchive,
  type LogStanding,
} from './log-archive.ts';
export { insertWithin } from './insert-within.ts';
export { cloneSecretsSpec, connectionIdOf } from './clone-secrets.ts';
export { idOfNamed, newId } from './ids.ts';
export { CacheEntries, cacheScopeId, type CacheEntry, type NewCacheEntry } from './cache-entries.ts';
export {
  hookDeliveriesSpec,
  HOOKS_PER_TENANT_MAX,
  hooksSpec,
  hookStatesSpec,
  type HookBacklog,
  type HookSubscription,
  type NewHookDelivery,
} from './hook-documents.ts';
export * from './runs-repository.ts';
export { KEPT_VIEW_CHARACTERS } from './view-cache.ts';
export type { ScheduleDocument, UnreadableSchedule } from './schedule-documents.ts';
export { openSqliteStore, type SqliteStoreOptions } from './sqlite/sqlite-store.ts';
export { openStore, storeAddressOf, type StoreAddress } from './open-store.ts';
export { openMongoStore } from './mongodb/open-mongo-store.ts';
