/** A scheduler's second of work on a broker: what is short by itself does not add up in one turn of the loop. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { machineTime } from '@penstock/async';
import { connectBus, ensureStreams } from '@penstock/bus';
import { SchedulerService } from '@penstock/scheduler/testing';
import { openSqliteStore, runCollections, RunsRepository } from '@penstock/store';
import { silentLogger } from '@penstock/telemetry';
import { startTestBroker } from '@penstock/testkit';
import { expect, it, onTestFinished, vi } from 'vitest';
import { PartitionOwner } from '../src/shell/partition-owner.ts';
import { schedulerPorts } from '../src/shell/scheduler-ports.ts';

const PARTITIONS = 4;

it('gives each of its partitions a turn of its own in every tick', async () => {
  const broker = await startTestBroker();
  const bus = await connectBus({ servers: broker.url, name: 'test' });
  const folder = mkdtempSync(join(tmpdir(), 'penstock-turns-'));
  const store = await openSqliteStore({ path: join(folder, 'store.db'), collections: runCollections });
  onTestFinished(async () => {
    await store.close();
    await bus.close();
    await broker.stop();
    rmSync(folder, { recursive: true, force: true });
  });
  await ensureStreams(bus, { partitions: PARTITIONS, journalBytesMax: 16 * 1024 ** 2, logsBytesMax: 16 * 1024 ** 2 });
  let turns = 0;
  const turn = async (): Promise<void> => {
    turns += 1;
    await machineTime.turn();
  };
  const ticks: number[] = [];
  const tick = vi.spyOn(PartitionOwner.prototype, 'tick').mockImplementation(() => void ticks.push(turns));
  onTestFinished(() => tick.mockRestore());
  const options = { bus, ledger: new RunsRepository(store), partitions: PARTITIONS, log: silentLogger() };
  const ports = schedulerPorts(bus, 6_000);
  const scheduler = new SchedulerService(options, { ...ports, time: { ...machineTime, turn } });
  await scheduler.start();
  onTestFinished(() => scheduler.close());
  await scheduler.settled();
  const before = ticks.length;
  await expect.poll(() => ticks.length, { interval: 20, timeout: 20_000 }).toBeGreaterThanOrEqual(before + PARTITIONS);
  const seen = ticks.slice(before);
  expect(new Set(seen).size).toBe(seen.length);
}, 60_000);
