import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { appendFile, mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { type Bus, connectBus, ensureStreams, openLog } from '@penstock/bus';
import { machineMemory } from '@penstock/service';
import { brokerBinary } from '@penstock/testkit';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type BrokerEnd, type EmbeddedBroker, startEmbeddedBroker } from '../src/broker.ts';
import { brokerMemoryBytes } from '../src/broker-config.ts';
import { identify, isAlive } from '../src/process-identity.ts';
import { silentLog } from '@penstock/telemetry/log';

const silent = silentLog;

let dataDir: string;
let broker: EmbeddedBroker | undefined;
let bus: Bus | undefined;
let ends: BrokerEnd[];
let onExit: (end: BrokerEnd) => void;

const start = (): Promise<EmbeddedBroker> =>
  startEmbeddedBroker({ dataDir, binary: brokerBinary(), log: silent, probeMs: 100, onExit: (end) => onExit(end) });
const connect = ({ url, user, password }: EmbeddedBroker): Promise<Bus> =>
  connectBus({ servers: url, user, pass: password, name: 'test' });
const nextEnd = (): Promise<BrokerEnd> => new Promise((resolve) => (onExit = resolve));

beforeEach(async () => {
  dataDir = await mkdtemp(join(tmpdir(), 'penstock-embedded-'));
  ends = [];
  onExit = (end) => ends.push(end);
});
afterEach(async () => {
  await bus?.close(0);
  await broker?.stop();
  bus = broker = undefined;
  await rm(dataDir, { recursive: true, force: true });
});

describe('the embedded broker', () => {
  it('lets in only who knows the password of this start, which stands in no argument and in a private file', async () => {
    broker = await start();
    await expect(connectBus({ servers: broker.url, name: 'stranger' })).rejects.toMatchObject({ tag: 'BrokerAway' });
    bus = await connect(broker);
    expect(await readFile(`/proc/${broker.pid}/cmdline`, 'utf8')).not.toContain(broker.password);
    expect(await readFile(`/proc/${broker.pid}/environ`, 'utf8')).not.toContain(broker.password);
    expect((await stat(join(dataDir, 'broker', 'nats.conf'))).mode & 0o077).toBe(0);
    const first = broker.password;
    await bus.close(0);
    await broker.stop();
    broker = await start();
    expect(broker.password).not.toBe(first);
  });

  it('is told to keep within an eighth of the memory, and has room for a million deliveries where that is had', async () => {
    const [mib, gib] = [1024 ** 2, 1024 ** 3];
    expect(brokerMemoryBytes(gib)).toBe(384 * mib);
    expect(brokerMemoryBytes(4 * gib)).toBe(512 * mib);
    expect(brokerMemoryBytes(64 * gib)).toBe(gib);
    broker = await start();
    const told = /(?:^|\0)GOMEMLIMIT=(\d+)(?:\0|$)/.exec(await readFile(`/proc/${broker.pid}/environ`, 'utf8'));
    expect(Number(told?.[1])).toBe(brokerMemoryBytes(machineMemory()));
  });

  it('gives streams less than the disk has, and both fit the store', async () => {
    broker = await start();
    bus = await connect(broker);
    expect(broker.journalBytesMax + broker.logsBytesMax).toBeLessThan(broker.storeBytesMax);
    await expect(ensureStreams(bus, { partitions: 1, ...broker })).resolves.toEqual({ bucketsCreated: true });
  });

  it('is started again after a kill, on the same port with the same credentials, and keeps what it acknowledged', async () => {
    broker = await start();
    bus = await connect(broker);
    await ensureStreams(bus, { partitions: 1, ...broker });
    const log = openLog(bus, 0);
    await log.append(Buffer.from('kept'), { commitId: 'a', expectedSequence: 0 });
    const killed = broker.pid;
    const back = once(bus.events, 'reconnected');
    const end = nextEnd();
    process.kill(killed, 'SIGKILL');
    expect(await end).toMatchObject({ signal: 'SIGKILL' });
    await back;
    expect(broker.pid).not.toBe(killed);
    expect(await log.last()).toMatchObject({ sequence: 1, commitId: 'a' });
  });

  it('that ends again and again is started ever later', async () => {
    const broken = join(dataDir, 'broken');
    const binary = join(dataDir, 'server');
    await writeFile(binary, `#!/bin/sh\n[ -e "${broken}" ] && exit 3\nexec "${brokerBinary()}" "$@"\n`, {
      mode: 0o755,
    });
    const failures = 4;
    const failed = Promise.withResolvers<number>();
    const endedAt: number[] = [];
    broker = await startEmbeddedBroker({
      dataDir,
      binary,
      log: silent,
      probeMs: 60_000,
      onExit: () => {
        endedAt.push(performance.now());
        if (endedAt.length > failures) failed.resolve(performance.now());
      },
    });
    await writeFile(broken, '');
    process.kill(broker.pid, 'SIGKILL');
    const lastAt = await failed.promise;
    await rm(broken);
    // 50, 100, 200 and 400 ms; a timer may fire a part of a millisecond early.
    expect(lastAt - (endedAt[0] ?? lastAt)).toBeGreaterThan(740);
  });

  it('is ended and started again when three probes stay unanswered', async () => {
    broker = await start();
    const frozen = broker.pid;
    const end = nextEnd();
    process.kill(frozen, 'SIGSTOP');
    expect(await end).toMatchObject({ signal: 'SIGKILL' });
    bus = await connect(broker);
    expect(broker.pid).not.toBe(frozen);
  });

  it('is probed also where it cannot be found out whether the disk has room', async () => {
    await mkdir(join(dataDir, 'broker', 'room'), { recursive: true });
    broker = await start();
    const end = nextEnd();
    const complain = (): void =>
      void appendFile(join(dataDir, 'broker', 'broker.log'), '[1] [ERR] no space left on device\n').catch(() => {});
    // Between any two probes.
    const complaining = setInterval(complain, 20);
    process.kill(broker.pid, 'SIGSTOP');
    expect(await end).toMatchObject({ signal: 'SIGKILL' });
    clearInterval(complaining);
  });

  it('leaves no process, pid file or password behind when it is stopped', async () => {
    broker = await start();
    const { pid } = broker;
    await broker.stop();
    expect(await identify(pid)).toBeNull();
    const left = await readdir(join(dataDir, 'broker'));
    expect(left).not.toContain('pid');
    expect(left).not.toContain('nats.conf');
    expect(ends).toEqual([]);
  });

  it('P17: ends a broker that survived a killed serve before it opens the store, also a frozen one', async () => {
    // A broker whose serve is gone and that no death signal reached, as where there is no setpriv.
    const first = await start();
    await first.stop();
    const configFile = join(dataDir, 'survivor.conf');
    await writeFile(
      configFile,
      `listen: "127.0.0.1:-1"\njetstream { store_dir: ${JSON.stringify(join(dataDir, 'broker', 'store'))} }\n`,
    );
    const survivor = spawn(brokerBinary(), ['-c', configFile], { stdio: 'ignore' });
    const ended = once(survivor, 'exit');
    const identity = await identify(survivor.pid ?? -1);
    if (identity === null) throw new Error('the survivor did not start');
    await writeFile(join(dataDir, 'broker', 'pid'), JSON.stringify(identity));
    survivor.kill('SIGSTOP');
    broker = await start();
    await ended;
    expect(await isAlive(identity)).toBe(false);
    bus = await connect(broker);
  });

  it('P17: a killed serve leaves a store that the next start opens alone, with all that was acknowledged', async () => {
    const serve = spawn(
      process.execPath,
      [fileURLToPath(new URL('fixtures/broker-holder.ts', import.meta.url)), dataDir, brokerBinary()],
      {
        stdio: ['ignore', 'pipe', 'inherit'],
      },
    );
    const [line] = (await once(createInterface({ input: serve.stdout }), 'line')) as [string];
    const left = await identify(Number(line));
    expect(left).not.toBeNull();
    serve.kill('SIGKILL');
    await once(serve, 'exit');
    broker = await start();
    expect(left !== null && (await isAlive(left))).toBe(false);
    bus = await connect(broker);
    expect(await openLog(bus, 0).last()).toMatchObject({ sequence: 1, commitId: 'before the kill' });
  });

  it('P17: leaves a process alone that merely has the recorded number', async () => {
    const bystander = spawn('sleep', ['60'], { stdio: 'ignore' });
    try {
      const first = await start();
      await first.stop();
      await writeFile(
        join(dataDir, 'broker', 'pid'),
        JSON.stringify({ pid: bystander.pid, startedAt: 'another boot/1' }),
      );
      broker = await start();
      expect(await identify(bystander.pid ?? -1)).not.toBeNull();
    } finally {
      bystander.kill('SIGKILL');
    }
  });

  it('says why it cannot start', async () => {
    const attempt = startEmbeddedBroker({ dataDir, binary: '/bin/false', log: silent });
    await expect(attempt).rejects.toThrow('the broker ended while it started');
  });

  it('opens its streams also when the disk has less room than before', async () => {
    broker = await start();
    bus = await connect(broker);
    await ensureStreams(bus, { partitions: 1, ...broker });
    await bus.close(0);
    const { storeBytesMax } = broker;
    await broker.stop();
    await writeFile(join(dataDir, 'broker', 'store-bytes-max'), String(storeBytesMax * 2));
    broker = await start();
    expect(broker.storeBytesMax).toBe(storeBytesMax * 2);
    bus = await connect(broker);
    await expect(ensureStreams(bus, { partitions: 1, ...broker })).resolves.toEqual({ bucketsCreated: false });
  });
});
