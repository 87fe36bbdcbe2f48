/**
 * `GET /pipeline/{id}/artifacts/{stage}/{path}`: a file that a stage has kept; without the path all of them as a `tar.gz`. What is
 * not there, expired, or not the caller's is answered alike.
 */
import type { ServerResponse } from 'node:http';
import { pipeline, Readable } from 'node:stream';
import { createGzip } from 'node:zlib';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { NotFound } from '@penstock/errors';
import { clientKeyOf, namesTag, rangeOf } from '@penstock/http';
import { isRunId, type RunId } from '@penstock/run';
import type { RunReads } from '@penstock/run-client';
import { letGo, type KeptFile } from '@penstock/artifacts';
import type { OpenPlaces } from '../sse/open-places.ts';
import { watcherOf, type Watcher, type WatcherSources } from '../sse/watcher.ts';
import { keptIn, type KeptFiles } from './kept-files.ts';
import { packFiles } from './pack.ts';

export interface ArtifactRouteOptions extends WatcherSources {
  readonly reads: RunReads;
  readonly kept: KeptFiles;
  readonly downloads: OpenPlaces;
}

interface Kept {
  readonly watcher: Watcher;
  readonly files: readonly KeptFile[];
  /** The run whose attempt has kept them. */
  readonly keptIn: RunId;
}

const NOTHING = 'There is no such artifact.';
/** A client that takes nothing for so long is cut off: others wait for its place. */
const STALLED_MS = 60_000;

export function addArtifactRoutes(app: FastifyInstance, options: ArtifactRouteOptions): void {
  const takePlace = (request: FastifyRequest, reply: FastifyReply, { credential }: Watcher): void => {
    const giveBack = options.downloads.take(credential.user?.id, clientKeyOf(request.clientAddress));
    // Of who has hung up while the run was looked for it has been told already.
    if (reply.raw.closed) return giveBack();
    reply.raw.once('close', giveBack);
    reply.raw.setTimeout(STALLED_MS, () => reply.raw.destroy());
  };

  app.route<{ Params: { readonly id: string; readonly stage: string; readonly '*': string } }>({
    method: ['GET', 'HEAD'],
    url: '/pipeline/:id/artifacts/:stage/*',
    config: { tier: 'read' },
    handler: async (request, reply) => {
      const { id, stage, '*': path } = request.params;
      const kept = await keptOf(options, request, id, stage);
      const file = kept.files.find((each) => each.path === path);
      if (file === undefined) throw new NotFound(NOTHING);
      takePlace(request, reply, kept.watcher);
      return sendFile(options.kept, kept.keptIn, file, request, reply);
    },
  });

  app.route<{ Params: { readonly id: string; readonly stage: string } }>({
    method: ['GET', 'HEAD'],
    url: '/pipeline/:id/artifacts/:stage',
    config: { tier: 'read' },
    handler: async (request, reply) => {
      const { id, stage } = request.params;
      const { files, watcher, keptIn: owner } = await keptOf(options, request, id, stage);
      takePlace(request, reply, watcher);
      reply.headers({
        ...COMMON_HEADERS,
        'Content-Type': 'application/gzip',
        'Content-Disposition': attachment(`${stage}.tar.gz`),
      });
      if (request.method === 'HEAD') return reply.send();
      const packed = Readable.from(
        packFiles(files, (file) => options.kept.read(owner, file)),
        { objectMode: false },
      );
      // What fails on the way closes the connection: an archive that was cut off is none.
      return reply.send(pipeline(packed, createGzip(), () => {}));
    },
  });
}

const COMMON_HEADERS = {
  'Cache-Control': 'private, no-cache',
  Vary: 'Authorization',
  // Shown as what it says it is, a stranger's file could be a page of this server.
  'X-Content-Type-Options': 'nosniff',
};

async function keptOf(
  options: ArtifactRouteOptions,
  request: FastifyRequest,
  runId: string,
  stageName: string,
): Promise<Kept> {
  const watcher = await watcherOf(options, request, runId, { inAddress: 'ticket' });
  const { tenants, namesOf, ticket } = watcher;
  const run = isRunId(runId) ? await options.reads.view(runId, tenants, namesOf) : null;
  if (run === null) throw new NotFound(NOTHING);
  if (ticket !== undefined)
    await options.tickets.use(ticket, run.finishedAt === null ? null : Date.parse(run.finishedAt));
  const stage = run.stages.find(({ name }) => name === stageName);
  const files = stage === undefined ? undefined : await options.kept.of(run, stage.artifacts);
  if (stage === undefined || files === undefined) throw new NotFound(NOTHING);
  return { watcher, files, keptIn: keptIn(run, stage.artifacts) };
}

function sendFile(
  kept: KeptFiles,
  runId: string,
  file: KeptFile,
  request: FastifyRequest,
  reply: FastifyReply,
): FastifyReply {
  const { sha256, sizeBytes, path } = file;
  const etag = `"${sha256}"`;
  reply.headers({ ...COMMON_HEADERS, ETag: etag, 'Accept-Ranges': 'bytes' });
  if (namesTag(request.headers['if-none-match'], etag)) return reply.code(304).send();
  const ifRange = request.headers['if-range'];
  const range = ifRange === undefined || ifRange === etag ? rangeOf(request.headers.range, sizeBytes) : 'whole';
  if (range === 'unsatisfiable')
    return reply
      .code(416)
      .header('Content-Range', `bytes */${sizeBytes}`)
      .send({ error: 'range_not_satisfiable', message: `The file has ${sizeBytes} bytes.` });
  reply.headers({
    'Content-Type': 'application/octet-stream',
    'Content-Disposition': attachment(path.slice(path.lastIndexOf('/') + 1)),
  });
  if (range === 'whole') reply.header('Content-Length', sizeBytes);
  else
    reply.code(206).headers({
      'Content-Range': `bytes ${range.from}-${range.to - 1}/${sizeBytes}`,
      'Content-Length': range.to - range.from,
    });
  if (request.method === 'HEAD') return reply.send();
  const bytes = kept.read(runId, file, range === 'whole' ? undefined : range);
  letGoOfSent(reply.raw);
  return reply.send(Readable.from(bytes, { objectMode: false }));
}

/** The memory of what the client's connection has taken is given back at once: nobody else has it. */
function letGoOfSent(response: ServerResponse): void {
  const write = response.write.bind(response) as (
    chunk: unknown,
    encoding: BufferEncoding,
    done: () => void,
  ) => boolean;
  response.write = (chunk: unknown) =>
    write(chunk, 'utf8', () => {
      if (chunk instanceof Uint8Array) letGo(chunk);
    });
}

/** The name as data: whatever it holds, it ends neither the header nor the quotes. */
function attachment(name: string): string {
  const plain = name.replaceAll(/[^A-Za-z0-9._-]/g, '_');
  const encoded = encodeURIComponent(name).replaceAll(/['()*]/g, (letter) => `%${letter.charCodeAt(0).toString(16)}`);
  return `attachment; filename="${plain}"; filename*=UTF-8''${encoded}`;
}
