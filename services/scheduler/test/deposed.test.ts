/** An owner whose commit is refused for another's: what it decided is worth nothing, and it begins from the log (P2). */
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connectBus, ensureStreams, openLog, subjects, type CreateReply, type CreateRequest } from '@penstock/bus';
import { newRunId } from '@penstock/run';
import { startScheduler } from '@penstock/scheduler';
import { COMMIT_FORMAT, decodeCommit, encodeCommit } from '@penstock/scheduler/testing';
import { openSqliteStore, runCollections, RunsRepository } from '@penstock/store';
import { silentLogger } from '@penstock/telemetry';
import { startTestBroker } from '@penstock/testkit';
import { expect, it, onTestFinished } from 'vitest';

it("P2: an owner whose commit is refused goes on only as the partition's next owner, above the epoch that it found", async () => {
  const broker = await startTestBroker();
  const bus = await connectBus({ servers: broker.url, name: 'test' });
  const folder = mkdtempSync(join(tmpdir(), 'penstock-deposed-'));
  const store = await openSqliteStore({ path: join(folder, 'store.db'), collections: runCollections });
  onTestFinished(async () => {
    await store.close();
    await bus.close();
    await broker.stop();
    rmSync(folder, { recursive: true, force: true });
  });
  await ensureStreams(bus, { partitions: 1, journalBytesMax: 16 * 1024 ** 2, logsBytesMax: 16 * 1024 ** 2 });
  const scheduler = await startScheduler({
    bus,
    ledger: new RunsRepository(store),
    partitions: 1,
    membershipMs: 1_500,
    log: silentLogger(),
  });
  onTestFinished(() => scheduler.close());
  await scheduler.settled();
  const journal = openLog(bus, 0);
  const last = await journal.last();
  const { number = 0 } = last === null ? {} : decodeCommit(last.bytes);
  const foreign = { id: 'foreign', kind: 'opened', partition: 0, epoch: 5, owner: 'another', at: 1 } as const;
  const bytes = encodeCommit({ ...foreign, number: number + 1, minReader: COMMIT_FORMAT }, []);
  await journal.append(bytes, { commitId: 'foreign', expectedSequence: last?.sequence ?? 0 });
  const runId = newRunId({ now: Date.now(), key: 'ada', random: randomBytes(10) });
  const yaml = "pipeline: {name: p}\nstages: {a: {run: 'true'}}\n";
  const request: CreateRequest = { runId, tenant: 'ada', key: 'ada', yaml, origin: { kind: 'api' } };
  const create = (): Promise<CreateReply | undefined> =>
    bus
      .request<CreateRequest, CreateReply>(subjects.owner(0, 'create'), request, { timeoutMs: 500 })
      .catch(() => undefined);
  await expect.poll(create, { timeout: 20_000, interval: 100 }).toMatchObject({ ok: true, epoch: 6 });
}, 30_000);
