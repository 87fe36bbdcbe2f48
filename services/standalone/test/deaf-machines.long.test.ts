/** P37: machines of ten tenants that ask for much and read nothing, at the real broker: what they take of its memory, and who goes on. */
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Fastify, { type FastifyInstance } from 'fastify';
import {
  type Bus,
  connectBus,
  ensureStreams,
  inboxPrefixOf,
  newKeySeed,
  publicKeyOf,
  runnerUserName,
  subjects,
} from '@penstock/bus';
import { signFleetTicket } from '@penstock/identity';
import { silentLog } from '@penstock/telemetry/log';
import { brokerBinary } from '@penstock/testkit';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { addFleetSocket } from '../src/api/fleet-socket.ts';
import { type EmbeddedBroker, startEmbeddedBroker } from '../src/broker.ts';

const JWT_SECRET = 'a secret of sufficient length for a test';
const PATIENT_MS = 20_000;
const TENANTS = 10;
const MACHINES = 2;
/** Of half a mebibyte each, by each machine: what one connection could hold at the broker. */
const QUESTIONS = 60;
const MEBIBYTE = 1024 * 1024;
const PART = Buffer.alloc(512 * 1024, 'x');
const PACKAGE = subjects.service('registry', 'package');

interface Machine {
  readonly runner: string;
  readonly tenant: string;
  readonly seed: Uint8Array;
}
const machines: readonly Machine[] = Array.from({ length: TENANTS * MACHINES + 1 }, (_, index) => ({
  runner: `fr_${String(index).padStart(32, '0')}`,
  tenant: `user/${Math.floor(index / MACHINES)}`,
  seed: newKeySeed(),
}));
const [reader, ...deaf] = machines.toReversed();

let dataDir: string;
let broker: EmbeddedBroker;
let core: Bus;
let app: FastifyInstance;
let line: Server;
/** The machines' side of each connection, by the order of dialling. */
const sides: { readonly machine: Socket; readonly server: Socket }[] = [];
const buses: Bus[] = [];
let answered = 0;

beforeAll(async () => {
  dataDir = await mkdtemp(join(tmpdir(), 'penstock-deaf-'));
  broker = await startEmbeddedBroker({ dataDir, binary: brokerBinary(), log: silentLog });
  core = await connectBus({ servers: broker.url, user: broker.user, pass: broker.password, name: 'core' });
  await ensureStreams(core, { partitions: 1, fleet: true, ...broker });
  core.respond(PACKAGE, () => {
    answered += 1;
    return { ok: true, value: { data: PART } };
  });
  await core.flush();
  await broker.setRunners(
    new Map(machines.map(({ runner, tenant, seed }) => [runner, { publicKey: publicKeyOf(seed), tenant }])),
  );
  app = Fastify();
  addFleetSocket(app, { port: broker.fleetPort, jwtSecret: JWT_SECRET, now: Date.now });
  await app.listen({ port: 0, host: '127.0.0.1' });
  // Where a machine's bytes can be left lying.
  line = createServer((machine) => {
    const server = connect((app.server.address() as AddressInfo).port, '127.0.0.1');
    for (const socket of [machine, server]) socket.on('error', () => {});
    machine.pipe(server);
    server.pipe(machine);
    sides.push({ machine, server });
  }).listen(0, '127.0.0.1');
  await once(line, 'listening');
}, 60_000);
afterAll(async () => {
  for (const { machine, server } of sides) {
    machine.destroy();
    server.destroy();
  }
  await Promise.all(buses.map((bus) => bus.close(0)));
  await app.close();
  line.close();
  await core.close(0);
  await broker.stop();
  await rm(dataDir, { recursive: true, force: true });
});

async function dial({ runner, tenant, seed }: Machine): Promise<Bus> {
  const ticket = signFleetTicket(JWT_SECRET, { runner, tenant }, Date.now() + 600_000);
  const address = `ws://127.0.0.1:${(line.address() as AddressInfo).port}/runners/socket`;
  const options = { headers: { Authorization: `Bearer ${ticket}` } } as unknown as string[];
  const bus = await connectBus({
    servers: address,
    name: runner,
    seed,
    inboxPrefix: inboxPrefixOf(runnerUserName(runner)),
    openSocket: () => new WebSocket(address, options),
    connectTimeoutMs: PATIENT_MS,
  });
  buses.push(bus);
  return bus;
}

async function memoryOf(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8');
  return Number(/VmRSS:\s+(\d+) kB/u.exec(status)?.[1]) * 1024;
}

describe('machines of ten tenants that read nothing', { timeout: 120_000 }, () => {
  it('are cut before the broker holds much for them, while another one is answered', async () => {
    const before = await memoryOf(broker.pid);
    let most = before;
    for (const each of deaf) {
      const bus = await dial(each);
      const side = sides.at(-1);
      if (side === undefined) throw new Error('nobody dialled');
      side.server.unpipe(side.machine);
      side.server.pause();
      for (let asked = 0; asked < QUESTIONS; asked += 1)
        bus.request(PACKAGE, null, { timeoutMs: 600_000 }).catch(() => {});
      most = Math.max(most, await memoryOf(broker.pid));
    }
    const all = deaf.length * QUESTIONS;
    const other = await dial(reader as Machine);
    for (let more = 0; answered < all || more < 100; more += 1) {
      const { value } = await other.request<null, { value: { data: Uint8Array } }>(PACKAGE, null, {
        timeoutMs: PATIENT_MS,
      });
      expect(value.data).toHaveLength(PART.length);
      most = Math.max(most, await memoryOf(broker.pid));
    }
    // Half a gibibyte, where what they do not read stays with the broker.
    expect(most - before).toBeLessThan(200 * MEBIBYTE);
  });
});
