/** Serves the bare repository /repositories/acme/site.git by git's own http-backend, over TLS, to push to and to fetch from. */
import { execFileSync, spawn } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { createServer } from 'node:https';

const ROOT = '/repositories';
const REPOSITORY = `${ROOT}/acme/site.git`;
if (!existsSync(REPOSITORY)) {
  execFileSync('git', ['init', '--quiet', '--bare', '--initial-branch=main', REPOSITORY]);
  for (const [name, value] of [
    ['http.receivepack', 'true'],
    ['uploadpack.allowAnySHA1InWant', 'true'],
  ])
    execFileSync('git', ['-C', REPOSITORY, 'config', name, value]);
}

function headersIn(text) {
  return text.split('\r\n').map((line) => {
    const at = line.indexOf(':');
    return [line.slice(0, at), line.slice(at + 1).trim()];
  });
}

const tls = { key: readFileSync('/server/key.pem'), cert: readFileSync('/server/cert.pem') };
const server = createServer(tls, (request, response) => {
  const url = new URL(request.url, 'https://server');
  const git = spawn('git', ['http-backend'], {
    env: {
      PATH: process.env.PATH,
      HOME: ROOT,
      GIT_PROJECT_ROOT: ROOT,
      GIT_HTTP_EXPORT_ALL: '1',
      REQUEST_METHOD: request.method,
      PATH_INFO: url.pathname,
      QUERY_STRING: url.search.slice(1),
      CONTENT_TYPE: request.headers['content-type'] ?? '',
      HTTP_CONTENT_ENCODING: request.headers['content-encoding'] ?? '',
      GIT_PROTOCOL: request.headers['git-protocol'] ?? '',
    },
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  git.stdin.on('error', () => {});
  request.pipe(git.stdin);
  let head = Buffer.alloc(0);
  let isHeadRead = false;
  git.stdout.on('data', (data) => {
    if (isHeadRead) return void response.write(data);
    head = Buffer.concat([head, data]);
    const end = head.indexOf('\r\n\r\n');
    if (end < 0) return;
    isHeadRead = true;
    const headers = headersIn(head.toString('latin1', 0, end));
    const status = headers.find(([name]) => name === 'Status')?.[1] ?? '200';
    response.writeHead(Number.parseInt(status, 10), headers.filter(([name]) => name !== 'Status').flat());
    response.write(head.subarray(end + 4));
  });
  git.stdout.on('end', () => response.end());
});
server.listen(8443);
process.on('SIGTERM', () => process.exit(0));
