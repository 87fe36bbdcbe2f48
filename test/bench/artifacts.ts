/**
 * A file that a stage keeps on its way into the object storage and out of it, on a server as a user has it; beside it, in the same
 * run and on the same disk, a plain upload over HTTP that is synced as well, a plain download, and the storage by itself.
 */
import { createHash, randomBytes } from 'node:crypto';
import { createReadStream, createWriteStream } from 'node:fs';
import { open, stat } from 'node:fs/promises';
import { createServer, request, type Server } from 'node:http';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { openFolderStore } from '@penstock/object-store';
import { startServer, temporaryFolder, TRIGGER, type RunningServer } from '../support/server.ts';
import { readStream } from '../support/sse.ts';

const MEGABYTES = 256;
const BYTES = MEGABYTES * 1_000_000;
const ROUNDS = 3;

export async function benchArtifacts(): Promise<string[]> {
  const folder = temporaryFolder('penstock-bench-');
  const server = await startServer({ dataDir: join(folder.path, 'data') });
  const plain = await plainServer(folder.path);
  const source = join(folder.path, 'source');
  try {
    await writeRandom(source);
    const [keep, fetched, up, down, storage]: number[][] = [[], [], [], [], []];
    for (let round = 0; round < ROUNDS; round += 1) {
      const kept = await keepFile(server, source);
      keep?.push(kept.seconds);
      fetched?.push(await timed(() => download(`${server.url}${kept.path}`, server.apiKey)));
      up?.push(await timed(() => upload(plain.url, source)));
      down?.push(await timed(() => download(plain.url, '')));
      storage?.push(await timed(() => store(join(folder.path, `objects-${round}`), source)));
    }
    const rate = (seconds: readonly number[] = []): number => MEGABYTES / (seconds.toSorted((a, b) => a - b)[1] ?? 1);
    return [
      `kept: ${rate(keep).toFixed(0)} MB/s from the end of the stage's process to its result, hashing and ${MEGABYTES} MB of storing included`,
      `  ${percent(rate(keep), rate(up))} of a plain upload over HTTP (${rate(up).toFixed(0)} MB/s), ${percent(rate(keep), rate(storage))} of the storage by itself (${rate(storage).toFixed(0)} MB/s)`,
      `fetched: ${rate(fetched).toFixed(0)} MB/s, ${percent(rate(fetched), rate(down))} of a plain download (${rate(down).toFixed(0)} MB/s)`,
    ];
  } finally {
    plain.server.close();
    plain.server.closeAllConnections();
    await server.stop();
    folder.remove();
  }
}

function percent(rate: number, of: number): string {
  return `${((100 * rate) / of).toFixed(0)} %`;
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
  server: RunningServer,
  source: string,
): Promise<{ readonly seconds: number; readonly path: string }> {
  const yaml = `pipeline: {name: bench}\nstages: {a: {run: cp ${source} large; echo done, artifacts: large}}\n`;
  const { data } = await server.graphql<{ triggerPipeline: { run: { id: string } } }>(TRIGGER, {
    yaml,
    waitSeconds: 300,
  });
  const { id } = data.triggerPipeline.run;
  const { events } = await readStream(`${server.url}/pipeline/${id}/logs`, server.apiKey);
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
