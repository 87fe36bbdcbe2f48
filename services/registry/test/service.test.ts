/** `penstock service registry` as a process of its own, with its packages on the broker. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { expect, it } from 'vitest';
import { connectBus, ensureStreams } from '@penstock/bus';
import type { PublishAnswer } from '@penstock/extension';
import { callService } from '@penstock/service';
import { startTestBroker } from '@penstock/testkit';
import { hashOf, packageOf, service } from './support.ts';

const API_KEY = 'an-api-key-of-a-test';

it('serves packages over HTTP and answers on the bus, wants its secrets, and ends when told to', async () => {
  const broker = await startTestBroker();
  const bus = await connectBus({ servers: broker.url, name: 'test' });
  await ensureStreams(bus, { partitions: 1, journalBytesMax: 64 * 1024 ** 2, logsBytesMax: 64 * 1024 ** 2 });
  const folder = await mkdtemp(join(tmpdir(), 'penstock-registry-service-'));
  const start = (env: Record<string, string>) =>
    spawn(process.execPath, [join(import.meta.dirname, 'fixtures', 'service.ts')], {
      env: {
        ...process.env,
        SERVICE_NATS_URL: broker.url,
        SERVICE_STORE_URL: `sqlite:${join(folder, 'store.db')}`,
        SERVICE_LISTEN: '127.0.0.1:0',
        SERVICE_INTERNAL_LISTEN: '127.0.0.1:0',
        ...env,
      },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
  try {
    const without = start({ SERVICE_API_KEY: API_KEY });
    let problem = '';
    without.stderr.on('data', (text) => (problem += String(text)));
    expect((await once(without, 'exit'))[0]).toBe(2);
    expect(problem).toContain('JWT_SECRET');

    const child = start({ SERVICE_API_KEY: API_KEY, JWT_SECRET: 'x'.repeat(32) });
    const address = Promise.withResolvers<string>();
    let output = '';
    for (const stream of [child.stdout, child.stderr]) {
      createInterface({ input: stream }).on('line', (line) => {
        output += `${line}\n`;
        const url = /"url":"(http[^"]+)"/.exec(line)?.[1];
        if (url !== undefined) address.resolve(url);
      });
    }
    child.once('exit', () => address.reject(new Error(output)));
    const url = await address.promise;
    const bytes = await packageOf({ id: 'build/apart', note: 'x'.repeat(700_000) });
    const at = `${url}/registry/packages/${hashOf(bytes)}`;
    const headers = { authorization: `Bearer ${API_KEY}`, 'content-type': 'application/gzip' };
    expect((await fetch(at, { method: 'PUT', body: bytes, headers })).status).toBe(201);
    expect((await fetch(at)).status).toBe(404);
    expect(
      await callService<unknown, PublishAnswer>(bus, 'registry', 'publish', {
        caller: service,
        packageHash: hashOf(bytes),
      }),
    ).toMatchObject({ created: true });
    const response = await fetch(at);
    expect([response.status, hashOf(Buffer.from(await response.arrayBuffer()))]).toEqual([200, hashOf(bytes)]);
    const part = await fetch(at, { headers: { range: 'bytes=300000-300009' } });
    expect(Buffer.from(await part.arrayBuffer()).equals(bytes.subarray(300_000, 300_010))).toBe(true);
    child.kill('SIGTERM');
    expect((await once(child, 'exit'))[0], output).toBe(0);
  } finally {
    await bus.close();
    await broker.stop();
    await rm(folder, { recursive: true });
  }
});
