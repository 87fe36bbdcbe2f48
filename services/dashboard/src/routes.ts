/**
 * `/dashboard/`: static files, and the page itself at every address below it that is no file, for the page knows its own addresses.
 * It stands under a policy of its own: scripts, styles and requests of this server alone, nothing inline, no text made into a script.
 */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { NotFound, Unavailable } from '@penstock/errors';
import { BUILT_FOLDER, readBuiltFiles, type BuiltFile, type BuiltFiles } from './built-files.ts';

/** Names hold a hash of the content, so a name never means anything else. */
const ASSET_CACHE = 'public, max-age=31536000, immutable';
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self'",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join('; ');

/** `folder`: default where the bootstrap builds it. It is read at the first request, and again until it is there. */
export function addDashboardRoutes(app: FastifyInstance, folder = BUILT_FOLDER): void {
  let files: BuiltFiles | null = null;
  const built = (): BuiltFiles => {
    files ??= readBuiltFiles(folder);
    if (files === null)
      throw new Unavailable(
        'The dashboard has not been built on this machine: `npm start` and `penstock serve` build it and say why they cannot.',
      );
    return files;
  };

  app.get('/dashboard', { config: { tier: 'read' } }, (_request, reply) => reply.redirect('/dashboard/', 302));

  app.get<{ Params: { readonly name: string } }>(
    '/dashboard/assets/:name',
    { config: { tier: 'read' } },
    async (request, reply) => {
      const found = built().assets.get(request.params.name);
      if (found === undefined) throw new NotFound('There is no such file of the dashboard; load its page again.');
      return await send(request, reply.header('Cache-Control', ASSET_CACHE), found);
    },
  );

  app.get('/dashboard/*', { config: { tier: 'read' } }, (request, reply) =>
    send(request, reply.headers({ 'Cache-Control': 'no-cache', 'Content-Security-Policy': POLICY }), built().index),
  );

  // What commit statuses link to where the dashboard's address is the server's own.
  app.get<{ Params: { readonly id: string } }>('/runs/:id', { config: { tier: 'read' } }, (request, reply) =>
    reply.redirect(`/dashboard/runs/${encodeURIComponent(request.params.id)}`, 302),
  );
}

async function send(request: FastifyRequest, reply: FastifyReply, file: BuiltFile): Promise<FastifyReply> {
  reply.headers({ 'Content-Type': file.type, Vary: 'Accept-Encoding' });
  const accepted = request.headers['accept-encoding'] ?? '';
  return /\bbr\b/u.test(String(accepted))
    ? reply.header('Content-Encoding', 'br').send(await file.compressed())
    : reply.send(file.content);
}
