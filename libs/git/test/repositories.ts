/** Repositories of one's own making, and servers that give them away in the ways there are. */
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  createReadStream,
  mkdirSync,
  mkdtempSync,
  realpathSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { openMirrors, type MirrorCache, type MirrorCacheOptions } from '../src/mirrors.ts';
import { silentLog } from '@penstock/telemetry/log';

export const DEVELOPMENT = { mode: 'development', allowedHosts: [] } as const;

export function temporaryFolder(): string {
  return realpathSync(mkdtempSync(join(tmpdir(), 'penstock-git-')));
}

export class Repository {
  readonly folder: string;

  constructor(folder: string, objectFormat = 'sha1') {
    this.folder = folder;
    mkdirSync(folder, { recursive: true });
    this.git('init', '-q', '-b', 'main', `--object-format=${objectFormat}`);
  }

  git(...args: readonly string[]): string {
    return execFileSync('git', [...args], {
      cwd: this.folder,
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'pipe'],
      env: {
        PATH: process.env['PATH'],
        HOME: '/dev/null',
        GIT_CONFIG_NOSYSTEM: '1',
        GIT_AUTHOR_NAME: 'a',
        GIT_AUTHOR_EMAIL: 'a@b',
        GIT_COMMITTER_NAME: 'a',
        GIT_COMMITTER_EMAIL: 'a@b',
      },
    }).trim();
  }

  /** Files by path; `{ link }` makes a symbolic one. Gives the commit's id. */
  commit(files: Readonly<Record<string, string | Buffer | { readonly link: string }>>, message = 'a commit'): string {
    for (const [path, content] of Object.entries(files)) {
      const target = join(this.folder, path);
      rmSync(target, { force: true, recursive: true });
      mkdirSync(dirname(target), { recursive: true });
      if (typeof content === 'string' || Buffer.isBuffer(content)) writeFileSync(target, content);
      else symlinkSync(content.link, target);
    }
    this.git('add', '-A');
    this.git('commit', '-q', '--allow-empty', '-m', message);
    return this.git('rev-parse', 'HEAD');
  }

  /** Commits of one file on top of each other, by one process. Gives their ids, the oldest first. */
  commitMany(
    count: number,
    at: (index: number) => { readonly path: string; readonly text: string; readonly message: string },
  ): readonly string[] {
    const input = Array.from({ length: count }, (_, index) => {
      const { path, text, message } = at(index);
      return `commit refs/heads/main\ncommitter a <a@b> ${index} +0000\ndata ${Buffer.byteLength(message)}\n${message}M 100644 inline ${path}\ndata ${Buffer.byteLength(text)}\n${text}\n`;
    }).join('');
    execFileSync('git', ['fast-import', '--quiet'], { cwd: this.folder, input, stdio: ['pipe', 'ignore', 'inherit'] });
    this.git('reset', '-q', '--hard');
    return this.git('log', '--reverse', '--format=%H').split('\n');
  }

  /** A commit whose tree holds exactly these entries, also such as no file system could have made. */
  commitEntries(
    entries: readonly {
      readonly mode: string;
      readonly type: string;
      readonly object: string;
      readonly path: string;
    }[],
  ): string {
    const listing = entries.map(({ mode, type, object, path }) => `${mode} ${type} ${object}\t${path}`).join('\n');
    const tree = execFileSync('git', ['mktree', '--missing'], {
      cwd: this.folder,
      input: `${listing}\n`,
      encoding: 'utf8',
    }).trim();
    const commit = this.git('commit-tree', '-m', 'made by hand', tree);
    this.git('update-ref', 'refs/heads/main', commit);
    return commit;
  }

  get url(): string {
    return `file://${this.folder}`;
  }
}

export interface TestServer {
  readonly url: string;
  readonly port: number;
  /** Method and path of each request, and its authorization. */
  readonly requests: { readonly line: string; readonly authorization: string | undefined }[];
  close(): Promise<void>;
}

export async function serve(
  answer: (request: IncomingMessage, response: ServerResponse) => unknown,
): Promise<TestServer> {
  const requests: { line: string; authorization: string | undefined }[] = [];
  const server = createServer((request, response) => {
    requests.push({ line: `${request.method} ${request.url}`, authorization: request.headers.authorization });
    void answer(request, response);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    port,
    requests,
    url: `http://127.0.0.1:${port}`,
    close: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

/** git's own program behind a web server. `protocol` 0 knows nothing of commits that no ref names. `before`: each request is answered after it. */
export function smartServer(
  root: string,
  { protocol = 2 as 0 | 2, password = null as string | null, before = (): Promise<void> => Promise.resolve() } = {},
): Promise<TestServer> {
  return serve(async (request, response) => {
    await before();
    if (
      password !== null &&
      request.headers.authorization !== `Basic ${Buffer.from(`user:${password}`).toString('base64')}`
    ) {
      response.writeHead(401, { 'www-authenticate': 'Basic realm="git"' }).end('who are you?');
      return;
    }
    const url = new URL(request.url ?? '', 'http://server');
    const child = spawn('git', ['http-backend'], {
      env: {
        PATH: process.env['PATH'],
        GIT_PROJECT_ROOT: root,
        GIT_HTTP_EXPORT_ALL: '1',
        PATH_INFO: url.pathname,
        QUERY_STRING: url.search.slice(1),
        REQUEST_METHOD: request.method,
        CONTENT_TYPE: request.headers['content-type'] ?? '',
        REMOTE_ADDR: '127.0.0.1',
        ...(request.headers['content-encoding'] === undefined
          ? {}
          : { HTTP_CONTENT_ENCODING: request.headers['content-encoding'] }),
        ...(protocol === 2 ? { GIT_PROTOCOL: String(request.headers['git-protocol'] ?? '') } : {}),
      },
      stdio: ['pipe', 'pipe', 'ignore'],
    });
    request.pipe(child.stdin);
    child.stdin.on('error', () => {});
    let head = Buffer.alloc(0);
    let isBody = false;
    child.stdout.on('data', (bytes: Buffer) => {
      if (isBody) {
        response.write(bytes);
        return;
      }
      head = Buffer.concat([head, bytes]);
      const end = head.indexOf('\r\n\r\n');
      if (end === -1) return;
      isBody = true;
      const headers = head
        .subarray(0, end)
        .toString('latin1')
        .split('\r\n')
        .map((line) => line.split(': ') as [string, string]);
      response.writeHead(
        Number.parseInt(headers.find(([name]) => name === 'Status')?.[1] ?? '200', 10),
        Object.fromEntries(headers.filter(([name]) => name !== 'Status')),
      );
      response.write(head.subarray(end + 4));
    });
    child.stdout.on('end', () => response.end());
  });
}

/** Nothing but the files of a repository. */
export function dumbServer(root: string): Promise<TestServer> {
  return serve((request, response) => {
    const path = join(root, new URL(request.url ?? '', 'http://server').pathname);
    if (statSync(path, { throwIfNoEntry: false })?.isFile() !== true) response.writeHead(404).end();
    else createReadStream(path).pipe(response.writeHead(200, { 'content-type': 'text/plain' }));
  });
}

export function mirrorsIn(folder: string, more: Partial<MirrorCacheOptions> = {}): MirrorCache {
  return openMirrors({ folder, bytesMax: 1024 ** 3, policy: DEVELOPMENT, log: silentLog, ...more });
}
