/**
 * The store on one machine: run documents saved as the projector saves them, beside bare inserts of the same bytes into
 * SQLite in the same run; what each costs the event loop; pages of runs read back.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { DatabaseSync } from 'node:sqlite';
import { newRunId, type RunEvent } from '@penstock/run';
import { encodeRun, openSqliteStore, runCollections, RunsRepository, type RunDocument } from '@penstock/store';

const DOCUMENTS = 10_000;
const BATCH = 50;
const PAGES = 500;
const STAGES = ['lint', 'test', 'build'] as const;

export async function benchStore(): Promise<string[]> {
  const folder = await mkdtemp(join(tmpdir(), 'penstock-bench-store-'));
  const store = await openSqliteStore({ path: join(folder, 'store.db'), collections: runCollections });
  try {
    const runs = new RunsRepository(store);
    await saveAll(runs, documents(500));
    const batch = documents(DOCUMENTS);
    const saved = await saveAll(runs, batch);
    const raw = {
      full: rawInserts(join(folder, 'raw-full.db'), batch, 'full'),
      normal: rawInserts(join(folder, 'raw-normal.db'), batch, 'normal'),
    };
    const pages = await readPages(runs);
    return [
      `run documents saved: ${rate(saved.perSecond)}/s in batches of ${BATCH}, ${(saved.perSecond / raw.full.perSecond).toFixed(2)} of bare inserts`,
      `  bare inserts of the same documents, undeflated, synchronous=FULL: ${rate(raw.full.perSecond)}/s (NORMAL ${rate(raw.normal.perSecond)}/s)`,
      `  on the event loop: ${saved.mainMicros.toFixed(0)} us a document and at most ${saved.loopMsMax.toFixed(0)} ms at a time; bare inserts ${raw.full.mainMicros.toFixed(0)} us and ${raw.full.batchMsMax.toFixed(0)} ms`,
      `pages of 20 runs: ${rate(pages.perSecond)}/s one after the other, p99 ${pages.msP99.toFixed(1)} ms; ${rate(pages.togetherPerSecond)}/s with 8 at once`,
    ];
  } finally {
    await store.close();
    await rm(folder, { recursive: true });
  }
}

async function saveAll(
  runs: RunsRepository,
  all: readonly RunDocument[],
): Promise<{ perSecond: number; mainMicros: number; loopMsMax: number }> {
  const delay = monitorEventLoopDelay({ resolution: 1 });
  delay.enable();
  const cpu = threadMicros();
  const begin = performance.now();
  for (let from = 0; from < all.length; from += BATCH) await runs.saveBatch(all.slice(from, from + BATCH));
  const seconds = (performance.now() - begin) / 1000;
  delay.disable();
  return {
    perSecond: all.length / seconds,
    mainMicros: (threadMicros() - cpu) / all.length,
    loopMsMax: delay.max / 1e6,
  };
}

/** What SQLite does at its best for these documents: prepared inserts, a transaction a batch, on this thread. */
function rawInserts(
  path: string,
  all: readonly RunDocument[],
  synchronous: 'full' | 'normal',
): { perSecond: number; mainMicros: number; batchMsMax: number } {
  const database = new DatabaseSync(path);
  database.exec(
    `PRAGMA journal_mode = WAL; PRAGMA synchronous = ${synchronous}; CREATE TABLE runs (id TEXT PRIMARY KEY, tenant TEXT, sequence INTEGER, view TEXT, story TEXT)`,
  );
  const insert = database.prepare('INSERT INTO runs VALUES (?, ?, ?, ?, ?)');
  const cpu = threadMicros();
  const begin = performance.now();
  let batchMsMax = 0;
  for (let from = 0; from < all.length; from += BATCH) {
    const at = performance.now();
    database.exec('BEGIN');
    for (const document of all.slice(from, from + BATCH)) {
      const run = encodeRun(document);
      insert.run(run.id, run.tenant, run.sequence, run.view, run.story);
    }
    database.exec('COMMIT');
    batchMsMax = Math.max(batchMsMax, performance.now() - at);
  }
  const seconds = (performance.now() - begin) / 1000;
  database.close();
  return { perSecond: all.length / seconds, mainMicros: (threadMicros() - cpu) / all.length, batchMsMax };
}

async function readPages(
  runs: RunsRepository,
): Promise<{ perSecond: number; togetherPerSecond: number; msP99: number }> {
  const read = () => runs.page({ tenants: ['service', 'somebody'], limit: 20 });
  const times: number[] = [];
  for (let page = 0; page < PAGES; page++) {
    const begin = performance.now();
    await read();
    times.push(performance.now() - begin);
  }
  const alone = times.reduce((sum, ms) => sum + ms, 0) / 1000;
  const begin = performance.now();
  await Promise.all(
    Array.from({ length: 8 }, async () => {
      for (let page = 0; page < PAGES / 4; page++) await read();
    }),
  );
  return {
    perSecond: PAGES / alone,
    togetherPerSecond: (PAGES * 2) / ((performance.now() - begin) / 1000),
    msP99: times.toSorted((a, b) => a - b)[Math.floor(PAGES * 0.99)] ?? 0,
  };
}

/** Three-stage runs that have ended, each with its events. */
function documents(count: number): RunDocument[] {
  const yaml = [
    'engine: "1"',
    'pipeline:',
    '  name: bench',
    'stages:',
    ...STAGES.map((name) => `  ${name}:\n    run: npm run ${name} -- --ci`),
  ].join('\n');
  const now = Date.now();
  return Array.from({ length: count }, (_, index): RunDocument => {
    const key = `service/project-${index % 40}`;
    const random = crypto.getRandomValues(new Uint8Array(8));
    const created = {
      tenant: 'service',
      key,
      pipelineName: `pipeline-${index % 40}`,
      yaml,
      priority: 0,
      origin: { kind: 'api' },
    } as const;
    const id = newRunId({ now: now + index, key, random });
    const runner = `runner-${random[0]}`;
    const events: RunEvent[] = [{ type: 'run_created', at: now, ...created }];
    for (const stage of STAGES) {
      events.push(
        { type: 'stages_queued', at: now, stages: [stage] },
        { type: 'stage_started', at: now, stage, attempt: 1, runner, session: id.slice(9), credit: index },
        {
          type: 'stage_completed',
          at: now,
          stage,
          attempt: 1,
          status: 'SUCCESS',
          exitCode: 0,
          outputs: { version: `1.2.${index}` },
          logBytes: index,
        },
      );
    }
    events.push({ type: 'run_completed', at: now, status: 'SUCCESS' });
    const time = new Date(now).toISOString();
    return {
      partition: 0,
      open: false,
      incarnation: 1,
      sequence: index + 1,
      events,
      state: {
        id,
        ...created,
        createdAt: now,
        version: events.length,
        eventBytes: 0,
        status: 'SUCCESS',
        held: false,
        finishedAt: now,
        openStages: 0,
        liveAttempts: 0,
        workspaces: { '': runner },
        stages: STAGES.map((name) => ({
          name,
          status: 'SUCCESS',
          attempt: 1,
          failures: 0,
          queuedAt: now,
          startedAt: now,
          finishedAt: now,
          exitCode: 0,
        })),
      },
      view: {
        id,
        tenant: 'service',
        key,
        pipelineName: created.pipelineName,
        status: 'SUCCESS',
        startedAt: time,
        finishedAt: time,
        outcome: null,
        reason: null,
        version: events.length,
        cancelledStages: null,
        stages: STAGES.map((name) => ({
          name,
          status: 'SUCCESS',
          startedAt: time,
          finishedAt: time,
          outputs: [{ key: 'version', value: `1.2.${index}` }],
          reason: null,
          exitCode: 0,
          attempt: 1,
        })),
      },
    };
  });
}

/** User and system time of this thread, in microseconds: the worker's is not in it. */
function threadMicros(): number {
  const { user, system } = process.threadCpuUsage();
  return user + system;
}

function rate(perSecond: number): string {
  return Math.round(perSecond).toLocaleString('en-US');
}
