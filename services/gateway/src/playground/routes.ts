/**
 * `GET /graphql/playground`: GraphiQL, served whole by this server; nothing comes from anywhere else. The page and its
 * files are the one place with a wider Content-Security-Policy: scripts and styles of this server, styles that carry this
 * page's nonce (a library inserts some), the fonts that are written into the style sheet, and requests to this server.
 */
import { createHash, randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import type { FastifyInstance } from 'fastify';
import { NotFound } from '@penstock/errors';

interface Asset {
  readonly name: string;
  readonly type: string;
  readonly content: Buffer;
}

const ASSETS = '/graphql/playground/assets';
/** Names hold a hash of the content, so a name never means anything else. */
const ASSET_CACHE = 'public, max-age=31536000, immutable';
const SCRIPT_TYPE = 'text/javascript; charset=utf-8';
const STYLE_TYPE = 'text/css; charset=utf-8';

interface PageFiles {
  readonly icon: Asset;
  readonly styles: readonly Asset[];
  readonly scripts: readonly Asset[];
}

export function addPlaygroundRoutes(app: FastifyInstance): void {
  const files = pageFiles();
  const assets = new Map([files.icon, ...files.styles, ...files.scripts].map((each) => [each.name, each]));

  app.get('/graphql/playground', { config: { tier: 'read' } }, (_request, reply) => {
    const nonce = randomBytes(16).toString('base64');
    return reply
      .headers({
        'Content-Type': 'text/html; charset=utf-8',
        'Content-Security-Policy': policyOf(nonce),
        'Cache-Control': 'no-store',
      })
      .send(pageOf(files, nonce));
  });

  app.get<{ Params: { readonly name: string } }>(`${ASSETS}/:name`, { config: { tier: 'read' } }, (request, reply) => {
    const found = assets.get(request.params.name);
    if (found === undefined) throw new NotFound('There is no such file of the playground.');
    return reply.headers({ 'Content-Type': found.type, 'Cache-Control': ASSET_CACHE }).send(found.content);
  });
}

function pageFiles(): PageFiles {
  const own = (file: string): Buffer => readFileSync(new URL(file, import.meta.url));
  return {
    icon: asset('icon.svg', 'image/svg+xml', own('icon.svg')),
    styles: [
      asset('graphiql.css', STYLE_TYPE, ofPackage('graphiql', 'graphiql.min.css')),
      asset('page.css', STYLE_TYPE, own('page.css')),
    ],
    scripts: [
      asset('react.js', SCRIPT_TYPE, ofPackage('react', 'umd/react.production.min.js')),
      asset('react-dom.js', SCRIPT_TYPE, ofPackage('react-dom', 'umd/react-dom.production.min.js')),
      asset('graphiql.js', SCRIPT_TYPE, ofPackage('graphiql', 'graphiql.min.js')),
      asset('start.js', SCRIPT_TYPE, own('start.js')),
    ],
  };
}

function policyOf(nonce: string): string {
  return [
    "default-src 'none'",
    "script-src 'self'",
    `style-src 'self' 'nonce-${nonce}'`,
    'font-src data:',
    "img-src 'self'",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join('; ');
}

function pageOf({ icon, styles, scripts }: PageFiles, nonce: string): string {
  return [
    '<!doctype html>',
    '<html lang="en">',
    '<head>',
    '<meta charset="utf-8">',
    '<meta name="viewport" content="width=device-width, initial-scale=1">',
    // A browser asks for /favicon.ico where none is named, and would report that there is none.
    `<link rel="icon" href="${ASSETS}/${icon.name}">`,
    '<title>Penstock GraphQL</title>',
    ...styles.map(({ name }) => `<link rel="stylesheet" href="${ASSETS}/${name}">`),
    '</head>',
    '<body>',
    `<div id="playground" data-nonce="${nonce}"></div>`,
    ...scripts.map(({ name }) => `<script src="${ASSETS}/${name}"></script>`),
    '</body>',
    '</html>',
    '',
  ].join('\n');
}

function asset(name: string, type: string, content: Buffer): Asset {
  const hash = createHash('sha256').update(content).digest('hex').slice(0, 12);
  return { name: `${hash}-${name}`, type, content };
}

/** Finds a file of a package as a module would be found, wherever packages are installed. */
function ofPackage(name: string, file: string): Buffer {
  const { resolve } = createRequire(import.meta.url);
  return readFileSync(join(dirname(resolve(`${name}/package.json`)), file));
}
