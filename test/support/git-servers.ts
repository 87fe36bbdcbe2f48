/** Git over http, as a host serves it: smart (git's own program behind CGI) and dumb (files). */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createReadStream, statSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';

export interface GitServer {
  readonly url: string;
  close(): Promise<void>;
}

/** Serves the repositories in `root` by their folders' names, to who is admitted by the header of its credentials; default everybody. */
export function startSmartServer(
  root: string,
  isAdmitted: (authorization: string | undefined) => boolean = () => true,
): Promise<GitServer> {
  return serve((request, response) => {
    if (!isAdmitted(request.headers.authorization)) {
      response.writeHead(401, { 'www-authenticate': 'Basic realm="git"' }).end();
      return;
    }
    const url = new URL(request.url ?? '', 'http://server');
    const git = spawn('git', ['http-backend'], {
      env: {
        PATH: process.env['PATH'],
        GIT_PROJECT_ROOT: root,
        GIT_HTTP_EXPORT_ALL: '1',
        GIT_CONFIG_NOSYSTEM: '1',
        HOME: root,
        GIT_CONFIG_COUNT: '1',
        GIT_CONFIG_KEY_0: 'uploadpack.allowAnySHA1InWant',
        GIT_CONFIG_VALUE_0: 'true',
        REQUEST_METHOD: request.method,
        PATH_INFO: url.pathname,
        QUERY_STRING: url.search.slice(1),
        CONTENT_TYPE: request.headers['content-type'] ?? '',
        HTTP_CONTENT_ENCODING: request.headers['content-encoding'] ?? '',
        GIT_PROTOCOL: String(request.headers['git-protocol'] ?? ''),
      },
      stdio: ['pipe', 'pipe', 'ignore'],
    });
    request.pipe(git.stdin);
    let head = Buffer.alloc(0);
    let headRead = false;
    git.stdout.on('data', (chunk: Buffer) => {
      if (headRead) return void response.write(chunk);
      head = Buffer.concat([head, chunk]);
      const end = head.indexOf('\r\n\r\n');
      if (end === -1) return;
      headRead = true;
      const headers = head
        .subarray(0, end)
        .toString()
        .split('\r\n')
        .map((line) => line.split(/:\s*/, 2) as [string, string]);
      response.writeHead(
        Number.parseInt(headers.find(([name]) => name === 'Status')?.[1] ?? '200', 10),
        headers.filter(([name]) => name !== 'Status').flat(),
      );
      response.write(head.subarray(end + 4));
    });
    git.stdout.on('end', () => response.end());
  });
}

/** After `git update-server-info`. */
export function startDumbServer(root: string): Promise<GitServer> {
  return serve((request, response) => {
    const path = join(root, new URL(request.url ?? '', 'http://server').pathname);
    if (statSync(path, { throwIfNoEntry: false })?.isFile() === true)
      createReadStream(path).pipe(response.writeHead(200, { 'content-type': 'text/plain' }));
    else response.writeHead(404).end();
  });
}

async function serve(answer: (request: IncomingMessage, response: ServerResponse) => void): Promise<GitServer> {
  const server = createServer(answer);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}
