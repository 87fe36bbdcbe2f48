/**
 * The bytes of packages over HTTP: `PUT` before a publication, `GET` afterwards, both streamed and both checked against the
 * hash in the path. What the caller may not see is answered like what is not there.
 */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { PACKAGE_BYTES_MAX } from '@penstock/extension';
import { BadUserInput, NotFound } from '@penstock/errors';
import { actorOf, onBehalfOf, requireScope, type Caller, type Callers } from '@penstock/identity';
import { ObjectTooLarge } from '@penstock/object-store';
import type { AuditLog } from '@penstock/store';
import { namesTag, rangeOf } from '@penstock/http';
import type { Registry } from '../operations/registry.ts';
import { asUnavailable } from '../catalogue/uploads.ts';

type PackageRequest = FastifyRequest<{ Params: { hash: string } }>;

const HASH = /^[0-9a-f]{64}$/;
const UPLOAD_TYPE = /^(?:application\/(?:x-)?gzip|application\/octet-stream)\s*(?:;|$)/i;
const PATH = '/registry/packages/:hash';
/** The bytes under a hash never change. */
const CACHING = 'max-age=31536000, immutable';

export interface RegistryRoutesOptions {
  readonly registry: Registry;
  readonly callers: Callers;
  /** For a process of its own; beside a gateway that records the refusals of all routes. */
  readonly audit?: AuditLog | undefined;
}

export function addRegistryRoutes(app: FastifyInstance, { registry, callers, audit }: RegistryRoutesOptions): void {
  // A scope of its own: only here a body is read as it comes.
  app.register((scope, _options, done) => {
    scope.removeAllContentTypeParsers();
    scope.addContentTypeParser('*', (_request, payload, parsed) => parsed(null, payload));

    const callerOf = async (request: PackageRequest): Promise<Caller> => {
      const caller = await callers.resolve(request.headers.authorization);
      // Whoever records a refusal of this request names the actor.
      request.actor = actorOf(caller);
      return caller;
    };
    if (audit !== undefined) recordRefusedUploads(scope, audit);

    scope.put(
      PATH,
      { config: { tier: 'api' }, bodyLimit: PACKAGE_BYTES_MAX },
      async (request: PackageRequest, reply) => {
        const caller = await callerOf(request);
        requireScope(caller, 'publish');
        const { hash } = request.params;
        if (!HASH.test(hash))
          throw new BadUserInput('The path must end with the SHA-256 of the package, in lower-case hex.');
        if (!UPLOAD_TYPE.test(request.headers['content-type'] ?? 'application/gzip')) return wrongType(reply);
        if (Number(request.headers['content-length'] ?? 0) > PACKAGE_BYTES_MAX) return tooLarge(reply);
        if (request.body === undefined || request.body === null)
          throw new BadUserInput('The body is missing: it is the package (a tar.gz).');
        try {
          const { sizeBytes } = await registry.upload(
            onBehalfOf(caller),
            hash,
            request.body as AsyncIterable<Uint8Array>,
          );
          return await reply.code(201).send({ hash, size: sizeBytes });
        } catch (error) {
          if (error instanceof ObjectTooLarge) return tooLarge(reply);
          throw asUnavailable(error);
        }
      },
    );

    const download = async (request: PackageRequest, reply: FastifyReply): Promise<FastifyReply> => {
      const caller = await callerOf(request);
      requireScope(caller, 'read');
      await sendPackage(registry, onBehalfOf(caller), request, reply).catch((error: unknown) => {
        throw asUnavailable(error);
      });
      return reply;
    };
    // HEAD by itself: made from GET, it would read the whole package for nothing.
    scope.route({ method: ['GET', 'HEAD'], url: PATH, config: { tier: 'read' }, handler: download });
    done();
  });
}

/** Only what somebody with a credential was refused: what is sent without one says nothing about anybody. */
function recordRefusedUploads(scope: FastifyInstance, audit: AuditLog): void {
  scope.addHook('onResponse', (request, reply, done) => {
    const outcome = REFUSED_UPLOADS[reply.statusCode];
    if (request.method === 'PUT' && outcome !== undefined && request.headers.authorization !== undefined)
      audit.record({
        at: Date.now(),
        actor: request.actor ?? 'unknown',
        action: 'request',
        target: `PUT ${PATH}`,
        outcome,
        ip: request.clientAddress,
      });
    done();
  });
}

const REFUSED_UPLOADS: Readonly<Record<number, string>> = {
  401: 'UNAUTHENTICATED',
  403: 'FORBIDDEN',
  429: 'RATE_LIMITED',
};

async function sendPackage(
  registry: Registry,
  caller: ReturnType<typeof onBehalfOf>,
  request: PackageRequest,
  reply: FastifyReply,
): Promise<void> {
  const { hash } = request.params;
  const found = HASH.test(hash) ? await registry.findPackage(caller, hash) : null;
  if (found === null) throw new NotFound('No package that you may see has this SHA-256.');
  const { size } = found;
  const etag = `"${hash}"`;
  reply.headers({
    ETag: etag,
    'Accept-Ranges': 'bytes',
    'Cache-Control': `${found.isPublic ? 'public' : 'private'}, ${CACHING}`,
    Vary: 'Authorization',
  });
  if (namesTag(request.headers['if-none-match'], etag)) {
    reply.code(304).send();
    return;
  }
  const ifRange = request.headers['if-range'];
  const range = ifRange === undefined || ifRange === etag ? rangeOf(request.headers.range, size) : 'whole';
  if (range === 'unsatisfiable') {
    reply
      .code(416)
      .header('Content-Range', `bytes */${size}`)
      .send({ error: 'range_not_satisfiable', message: `The package has ${size} bytes.` });
    return;
  }
  reply.type('application/gzip');
  if (range !== 'whole') {
    reply.code(206).headers({
      'Content-Range': `bytes ${range.from}-${range.to - 1}/${size}`,
      'Content-Length': range.to - range.from,
    });
    reply.send(request.method === 'HEAD' ? undefined : await found.read(range));
    return;
  }
  reply.header('Content-Length', size);
  reply.send(request.method === 'HEAD' ? undefined : await found.read());
}

function wrongType(reply: FastifyReply): FastifyReply {
  return reply.code(415).header('Connection', 'close').send({
    error: 'unsupported_media_type',
    message: 'Send the package as it is, with "Content-Type: application/gzip".',
  });
}

/** The rest of the body is not read: the connection is of no further use. */
function tooLarge(reply: FastifyReply): FastifyReply {
  return reply
    .code(413)
    .header('Connection', 'close')
    .send({ error: 'payload_too_large', message: `A package may have at most ${PACKAGE_BYTES_MAX} bytes.` });
}
