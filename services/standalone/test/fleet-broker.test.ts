/** P37: what a runner of the fleet may do at the real broker, and what it may not; and how it is let in and cut off. */
import { once } from 'node:events';
import { mkdir, mkdtemp, readdir, rename, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type NatsConnection, nkeyAuthenticator, nkeys, wsconnect } from '@nats-io/transport-node';
import { buckets, type Bus, connectBus, connectionOf, ensureStreams, inboxPrefixOf, openLog, runnerUserName } from '@penstock/bus';
import { silentLog } from '@penstock/telemetry/log';
import { brokerBinary } from '@penstock/testkit';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type EmbeddedBroker, startEmbeddedBroker } from '../src/broker.ts';

const PATIENT_MS = 20_000;
const A = `fr_${'a'.repeat(32)}`;
const B = `fr_${'b'.repeat(32)}`;

let dataDir: string;
let broker: EmbeddedBroker;
let core: Bus;
const keys = new Map([A, B].map((runner) => [runner, nkeys.createUser()]));
const publicKeys = new Map([...keys].map(([runner, key]) => [runner, key.getPublicKey()]));
const opened: NatsConnection[] = [];

const start = (): Promise<EmbeddedBroker> =>
  startEmbeddedBroker({ dataDir, binary: brokerBinary(), log: silentLog });
const coreOf = ({ url, user, password }: EmbeddedBroker): Promise<Bus> =>
  connectBus({ servers: url, user, pass: password, name: 'core' });

async function runnerOf(runner: string, seed = keys.get(runner)?.getSeed()): Promise<NatsConnection> {
  const connection = await wsconnect({
    servers: `ws://127.0.0.1:${broker.fleetPort}`,
    inboxPrefix: inboxPrefixOf(runnerUserName(runner)),
    authenticator: nkeyAuthenticator(seed ?? new Uint8Array()),
    reconnect: false,
    timeout: PATIENT_MS,
  });
  opened.push(connection);
  return connection;
}

beforeEach(async () => {
  dataDir = await mkdtemp(join(tmpdir(), 'penstock-fleet-'));
  broker = await start();
  core = await coreOf(broker);
  await ensureStreams(core, { partitions: 1, fleet: true, ...broker });
});
afterEach(async () => {
  await Promise.all(opened.splice(0).map((each) => each.close()));
  await core.close(0);
  await broker.stop();
  await rm(dataDir, { recursive: true, force: true });
});

describe('the door of the broker', () => {
  it('is shut to who was not let in, and opens and shuts without anybody else noticing', { timeout: 120_000 }, async () => {
    await expect(runnerOf(A)).rejects.toThrow(/authorization/i);
    let breaks = 0;
    core.events.on('disconnected', () => (breaks += 1));
    await broker.setRunners(new Map([...publicKeys].slice(0, 1)));
    const a = await runnerOf(A);
    await expect(runnerOf(B)).rejects.toThrow(/authorization/i);
    await broker.setRunners(publicKeys);
    const b = await runnerOf(B);
    await b.flush();
    const cutOff = a.closed();
    await broker.setRunners(new Map([...publicKeys].slice(1)));
    await cutOff;
    await expect(runnerOf(A)).rejects.toThrow(/authorization/i);
    // Whoever is still let in has noticed nothing.
    await b.flush();
    expect(breaks).toBe(0);
    expect(b.isClosed()).toBe(false);
    await core.flush();
  });
});
