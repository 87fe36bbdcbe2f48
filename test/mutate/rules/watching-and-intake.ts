/** Mutants of the rules about watching, counting, intake and copies, P20 to P25. */
import type { Check, Mutant } from '../mutant.ts';

const graphql: Check = { tests: 'services/gateway/test/graphql.test.ts' };
const logStream: Check = { tests: 'services/gateway/test/log-stream.test.ts' };
const eventStream: Check = { tests: 'services/gateway/test/event-stream.test.ts' };
const quotas: Check = { tests: 'services/scheduler/test/quotas.test.ts' };
const deliveries: Check = { tests: 'services/webhook-ingest/test/deliveries.test.ts' };

export const watchingAndIntake: readonly Mutant[] = [
  {
    rule: 'P20',
    breaks: 'waits for the end of a run without asking again',
    file: 'libs/run-client/src/run-end.ts',
    find: 'const timer = setInterval(() => void ask(), WATCH_ASK_MS);',
    replace: 'const timer = setInterval(() => {}, WATCH_ASK_MS);',
    noticedBy: [{ tests: 'libs/run-client/test/run-end.test.ts' }],
  },
  {
    rule: 'P20',
    breaks: 'does not ask a new owner for what it has missed',
    file: 'libs/run-client/src/owners.ts',
    find: '      for (const listener of [...(this.#askAgain.get(partition) ?? [])]) listener();\n',
    replace: '',
    noticedBy: [{ tests: 'libs/run-client/test/owners.test.ts' }, logStream, graphql],
  },
  {
    rule: 'P20',
    breaks: 'does not ask at a gap in the versions of events',
    file: 'services/gateway/src/sse/feed.ts',
    find: '    if (first > this.#eventStream.version + 1) {\n      void this.ask();\n      return;\n',
    replace: '    if (first > this.#eventStream.version + 1) {\n      return;\n',
    noticedBy: [{ tests: 'services/gateway/test/missed-events.test.ts' }],
  },
  {
    rule: 'P21',
    breaks: 'emits chunks of a runner that the journal does not name',
    file: 'services/gateway/src/event-stream/event-stream.ts',
    find: "if (attempt.runner !== stored.runner || attempt.closed) return 'drop';",
    replace: "if (attempt.closed) return 'drop';",
    noticedBy: [eventStream],
  },
  {
    rule: 'P21',
    breaks: 'makes chunks larger than 64 KiB',
    file: 'libs/executor/src/output/chunker.ts',
    find: 'const CHUNK_BYTES_MAX = 64 * 1024;',
    replace: 'const CHUNK_BYTES_MAX = 128 * 1024;',
    noticedBy: [{ tests: 'libs/executor/test/chunker.test.ts' }],
  },
  {
    rule: 'P21',
    breaks: 'emits the end of a stage before its log',
    file: 'services/gateway/src/event-stream/event-stream.ts',
    find: 'return attempt === undefined || attempt.isComplete(this.#runnerLog(attempt.runner).handled);',
    replace: 'return true;',
    noticedBy: [eventStream],
  },
  {
    rule: 'P22',
    breaks: 'shows the older of two views',
    file: 'libs/run-client/src/run-reads.ts',
    find: 'if (known === undefined || known.version < view.version) views.set(view.id, view);',
    replace: 'if (known === undefined || known.version > view.version) views.set(view.id, view);',
    noticedBy: [graphql],
  },
  {
    rule: 'P22',
    breaks: 'does not ask the owner about what the store shows as open',
    file: 'libs/run-client/src/run-reads.ts',
    find: 'if (open.length === 0) return [];',
    replace: 'if (open.length >= 0) return [];',
    noticedBy: [{ tests: 'libs/run-client/test/run-reads.test.ts' }],
  },
  {
    rule: 'P23',
    breaks: 'lets a run go on though its key has no concurrency slot free',
    file: 'services/scheduler/src/admission/concurrency-slots.ts',
    find: 'if (isFirst && slots.taken.size < slots.limit && slots.ready.length === 0) {',
    replace: 'if (isFirst && slots.ready.length === 0) {',
    noticedBy: [quotas],
  },
  {
    rule: 'P23',
    breaks: "forgets at a take-over what the log adds to the store's counters",
    file: 'services/scheduler/src/shell/usage-take-over.ts',
    find: 'month.runs = Math.max(month.runs, event.runOfMonth ?? 0);',
    replace: '',
    noticedBy: [{ tests: 'services/scheduler/test/usage-take-over.test.ts' }],
  },
  {
    rule: 'P23',
    breaks: 'counts stage time twice that a stored counter stands for',
    file: 'services/scheduler/src/shell/usage-take-over.ts',
    find: 'const ms = isBehind(month.storedAt, position) ? attemptMs(all, index) : undefined;',
    replace: 'const ms = attemptMs(all, index);',
    noticedBy: [{ tests: 'services/scheduler/test/usage-take-over.test.ts' }],
  },
  {
    rule: 'P24',
    breaks: 'stores a delivery a second time',
    file: 'libs/bus/src/jetstream/delivery-log.ts',
    find: 'const how = { expectedLastSequence: 0, more: { [LANE_HEADER]: lane } };',
    replace: 'const how = { more: { [LANE_HEADER]: lane } };',
    noticedBy: [{ tests: 'libs/bus/test/deliveries.test.ts' }, deliveries],
  },
  {
    rule: 'P24',
    breaks: 'takes the deliveries of two tenants for one',
    file: 'services/webhook-ingest/src/model/delivery.ts',
    find: 'JSON.stringify([provider, repository, tenant, deliveryId, ...trust])',
    replace: 'JSON.stringify([provider, repository, deliveryId, ...trust])',
    noticedBy: [deliveries, { tests: 'services/webhook-ingest/test/connections.test.ts' }],
  },
  {
    rule: 'P24',
    breaks: 'makes a run id that anybody can foresee',
    file: 'services/webhook-ingest/src/model/delivery.ts',
    find: "createHmac('sha256', keys.runIds).update(id).digest()",
    replace: "createHash('sha256').update(id).digest()",
    noticedBy: [{ tests: 'services/webhook-ingest/test/run-ids.test.ts' }],
  },
  {
    rule: 'P25',
    breaks: 'keeps one copy in a cluster',
    file: 'libs/bus/src/jetstream/streams.ts',
    find: 'options.replicas ?? (connection.info?.cluster ? 3 : 1)',
    replace: 'options.replicas ?? 1',
    noticedBy: [{ tests: 'libs/bus/test/cluster.test.ts', titles: ['P25:'] }],
  },
  {
    rule: 'P25',
    breaks: 'keeps leases in one copy whatever is set',
    file: 'libs/bus/src/jetstream/streams.ts',
    find: 'await ensureStream(manager, created, bucketConfig(bucket, replicas));',
    replace: 'await ensureStream(manager, created, bucketConfig(bucket, 1));',
    noticedBy: [{ tests: 'libs/bus/test/cluster.test.ts', titles: ['P25:'] }],
  },
];
