/**
 * A file that a stage keeps on its way into the object storage and out of it, on a server as a user has it, and with the services as
 * processes; beside it, in the same run and on the same disk, a plain upload over HTTP that is synced as well, a plain download, and the storage by itself.
 */
import { createHash, randomBytes, randomUUID } from 'node:crypto';
import { createReadStream, createWriteStream, readFileSync } from 'node:fs';
import { open, stat } from 'node:fs/promises';
import { createServer, request, type Server } from 'node:http';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { openFolderStore } from '@penstock/object-store';
import { descendantsOf } from '../support/processes.ts';
import { startServer, temporaryFolder, TRIGGER } from '../support/server.ts';
import { startCluster } from '../cluster/cluster.ts';
import { readStream } from '../support/sse.ts';

const MEGABYTES = 256;
const BYTES = MEGABYTES * 1_000_000;
const ROUNDS = 3;
const SAMPLE_MS = 20;
const PAGE_BYTES = 4_096;

/** A server, or the ingress of several. */
interface Product {
  readonly name: string;
  readonly url: string;
  readonly apiKey: string;
  readonly watched: readonly { readonly pid: number; readonly name: string }[];
  stop(): Promise<unknown>;
}

export async function benchArtifacts(): Promise<string[]> {
  const folder = temporaryFolder('penstock-bench-');
  try {
    const source = join(folder.path, 'source');
    await writeRandom(source);
    const lines: string[] = [];
    for (const start of [startAsOne, startApart])
      lines.push(...(await measured(await start(folder.path), folder.path, source)));
    return lines;
  } finally {
    folder.remove();
  }
}

async function startAsOne(folder: string): Promise<Product> {
  const server = await startServer({ dataDir: join(folder, 'data') });
  const watched = [{ pid: server.pid, name: 'serve' }];
  for (const each of descendantsOf(server.pid))
    if (each.command.includes('nats')) watched.push({ pid: each.pid, name: 'broker' });
  return { name: 'one process', url: server.url, apiKey: server.apiKey, watched, stop: () => server.stop() };
}

async function startApart(folder: string): Promise<Product> {
  const cluster = await startCluster({
    schedulers: 1,
    runners: 1,
    gateways: 1,
    ingests: 0,
    envOf: {
      registry: { SERVICE_OBJECTS_URL: `file:${join(folder, 'shared')}`, SERVICE_CONTENTS_LISTEN: '127.0.0.1:0' },
    },
  });
  const watched = (['runner', 'registry', 'gateway'] as const).map((name) => ({ pid: cluster.at(name, 0).pid, name }));
  // Not by the ingress, which is the test's.
  const url = cluster.at('gateway', 0).apiUrl ?? cluster.url;
  return { name: 'services apart', url, apiKey: cluster.apiKey, watched, stop: () => cluster.stop() };
}

async function measured(product: Product, folder: string, source: string): Promise<string[]> {
  const plain = await plainServer(folder);
  try {
    const [keep, fetched, up, down, storage]: number[][] = [[], [], [], [], []];
    const memory = watchMemory(product.watched);
    for (let round = 0; round < ROUNDS; round += 1) {
      const kept = await keepFile(product, source);
      keep?.push(kept.seconds);
      fetched?.push(await timed(() => download(`${product.url}${kept.path}`, product.apiKey)));
      up?.push(await timed(() => upload(plain.url, source)));
      down?.push(await timed(() => download(plain.url, '')));
      storage?.push(await timed(() => store(join(folder, `objects-${randomUUID()}`), source)));
    }
    const grown = memory.stop();
    const rate = (seconds: readonly number[] = []): number => MEGABYTES / (seconds.toSorted((a, b) => a - b)[1] ?? 1);
    return [
      `${product.name}, kept: ${rate(keep).toFixed(0)} MB/s from the end of the stage's process to its result, hashing and ${MEGABYTES} MB of storing included`,
      `  ${percent(rate(keep), rate(up))} of a plain upload over HTTP (${rate(up).toFixed(0)} MB/s), ${percent(rate(keep), rate(storage))} of the storage by itself (${rate(storage).toFixed(0)} MB/s)`,
      `${product.name}, fetched: ${rate(fetched).toFixed(0)} MB/s, ${percent(rate(fetched), rate(down))} of a plain download (${rate(down).toFixed(0)} MB/s)`,
      `  memory: ${grown.map(({ name, before, most }) => `${name} ${(most - before).toFixed(0)} MB more than the ${before.toFixed(0)} MB before`).join(', ')}`,
    ];
  } finally {
    plain.server.close();
    plain.server.closeAllConnections();
    await product.stop();
  }
}

function percent(rate: number, of: number): string {
  return `${((100 * rate) / of).toFixed(0)} %`;
}

interface Grown {
  readonly name: string;
  readonly before: number;
  most: number;
}

/** Resident memory of processes, in MB. */
function watchMemory(named: Product['watched']): { stop(): Grown[] } {
  const megabytes = (of: number): number => {
    try {
      return (Number(readFileSync(`/proc/${of}/statm`, 'utf8').split(' ')[1]) * PAGE_BYTES) / 1_000_000;
    } catch {
      return 0;
    }
  };
  const grown: Grown[] = named.map(({ pid: of, name }) => ({ name, before: megabytes(of), most: 0 }));
  const look = (): void =>
    named.forEach(({ pid: of }, index) => {
      const each = grown[index];
      if (each !== undefined) each.most = Math.max(each.most, megabytes(of));
    });
  look();
  const timer = setInterval(look, SAMPLE_MS);
  return {
    stop() {
      clearInterval(timer);
      look();
      return grown;
    },
  };
}

async function timed(work: () => Promise<void>): Promise<number> {
  const begun = performance.now();
  await work();
  return (performance.now() - begun) / 1000;
}

async function writeRandom(path: string): Promise<void> {
  const file = await open(path, 'w');
  const block = randomBytes(1_000_000);
  for (let at = 0; at < MEGABYTES; at += 1) {
    block.writeUInt32LE(at);
    await file.appendFile(block);
  }
  await file.close();
}

/** From the last line that the stage prints to the end of the stage. */
async function keepFile(
  { url, apiKey }: Product,
  source: string,
): Promise<{ readonly seconds: number; readonly path: string }> {
  const yaml = `pipeline: {name: bench}\nstages: {a: {run: cp ${source} large; echo done, artifacts: large}}\n`;
  const response = await fetch(`${url}/graphql`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${apiKey}` },
    body: JSON.stringify({ query: TRIGGER, variables: { yaml, waitSeconds: 300 } }),
  });
  const { data } = (await response.json()) as { data: { triggerPipeline: { run: { id: string } } } };
  const { id } = data.triggerPipeline.run;
  const { events } = await readStream(`${url}/pipeline/${id}/logs`, apiKey);
  const timeOf = (wanted: (event: (typeof events)[number]) => boolean): number =>
    Date.parse(String(events.find(wanted)?.data['timestamp']));
  const ended = timeOf(({ event, data: { line } }) => event === 'stage_log' && line === 'done');
  const completed = timeOf(({ event }) => event === 'stage_completed');
  return { seconds: (completed - ended) / 1000, path: `/pipeline/${id}/artifacts/a/large` };
}

async function download(url: string, token: string): Promise<void> {
  const response = await fetch(url, { headers: { authorization: `Bearer ${token}` } });
  let bytes = 0;
  for await (const part of response.body ?? []) bytes += part.length;
  if (bytes !== BYTES) throw new Error(`${bytes} bytes of ${BYTES} arrived`);
}

async function upload(url: string, source: string): Promise<void> {
  await new Promise<void>((done, failed) => {
    const sent = request(url, { method: 'PUT' }, (response) => response.resume().once('end', done)).once(
      'error',
      failed,
    );
    createReadStream(source).pipe(sent);
  });
}

async function store(folder: string, source: string): Promise<void> {
  const hash = createHash('sha256');
  for await (const part of createReadStream(source)) hash.update(part as Buffer);
  const objects = await openFolderStore(folder);
  await objects.put('large', createReadStream(source), { sha256: hash.digest('hex'), bytesMax: BYTES });
}

/** Takes a body in and syncs it, and gives it back. */
async function plainServer(folder: string): Promise<{ readonly url: string; readonly server: Server }> {
  const target = join(folder, 'plain');
  const server = createServer((incoming, answer) => {
    void (async () => {
      if (incoming.method === 'PUT') {
        await pipeline(incoming, createWriteStream(target, { flush: true }));
        answer.end();
      } else {
        answer.setHeader('content-length', (await stat(target)).size);
        await pipeline(createReadStream(target), answer);
      }
    })();
  });
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  const address = server.address();
  return { url: `http://127.0.0.1:${typeof address === 'object' ? (address?.port ?? 0) : 0}/`, server };
}
