/** The examples of docs/examples that need nothing but a shell, as repositories have them: pushed to a server, and run on a laptop. */
import { execFile, execFileSync } from 'node:child_process';
import { createServer, type Server } from 'node:http';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { githubPush, githubSignature, makeRepository, type TestRepository } from '@penstock/webhook-ingest/testing';
import { createRemoteJWKSet, jwtVerify, type JWTPayload } from 'jose';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startServer, temporaryFolder, type RunningServer } from '../support/server.ts';
import { readStream } from '../support/sse.ts';

const SECRET = 'the secret of the examples';
const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const CLI = join(ROOT, 'cli/src/main.ts');
const example = (name: string): string => readFileSync(join(ROOT, 'docs/examples', `${name}.yaml`), 'utf8');

const FILES = {
  'node-library': {
    'src/index.js': 'export const one = 1;\n',
    'test.sh':
      'echo "<testsuite name=\\"$1\\"><testcase name=\\"reads\\"/><testcase name=\\"writes\\"><skipped/></testcase></testsuite>"\n',
  },
  service: { VERSION: '1.2.3\n' },
  monorepo: {
    'packages/api/deps.lock': 'one 1.0\n',
    'packages/api/README.md': 'The API.\n',
    'packages/web/deps.lock': 'two 2.0\n',
    'shared/fetch.sh': 'mkdir -p deps && cp deps.lock deps/fetched && echo "fetched $(cat deps.lock)"\n',
    'shared/build.sh': 'mkdir -p dist && echo "built with $(cat deps/fetched)" > dist/out.txt\n',
  },
} as const;

let server: RunningServer;
let repository: TestRepository;
const home = temporaryFolder('penstock-examples-');

beforeAll(async () => {
  repository = makeRepository();
  server = await startServer({ env: { SERVICE_WEBHOOK_SECRET: SECRET, SERVICE_WEBHOOK_WAIT_SECS: '30' } });
}, 90_000);
afterAll(async () => {
  await server.stop();
  repository.remove();
  home.remove();
});

interface Shown {
  readonly type: string;
  readonly stage?: unknown;
  readonly status?: unknown;
  readonly tests?: unknown;
}

/** What happened to each stage, in order; stages that nothing orders may be told in either. */
function outlineOf(events: readonly Shown[]): Record<string, string[]> {
  const outline: Record<string, string[]> = {};
  for (const { type, stage, status, tests } of events) {
    if (type === 'stage_log' || type === 'run') continue;
    const told = [type, String(status).toUpperCase(), ...(tests === undefined ? [] : [JSON.stringify(tests)])];
    (outline[String(stage ?? '')] ??= []).push(told.join(' '));
  }
  return outline;
}

let pushes = 0;

/** `changed`: what the host says of it; default: it does not say. */
async function pushed(
  name: string,
  files: Readonly<Record<string, string>>,
  changed?: readonly string[],
): Promise<{ readonly id: string; readonly status: string }> {
  const commit = repository.commit(files, name);
  const body = JSON.stringify(githubPush({ url: repository.url, commit, repository: `examples/${name}`, changed }));
  const response = await fetch(`${server.url}/webhook`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      'x-github-event': 'push',
      'x-github-delivery': `${name}-${(pushes += 1)}`,
      'x-hub-signature-256': githubSignature(body, SECRET),
    },
    body,
  });
  const { run_id: id, status } = (await response.json()) as { readonly run_id: string | null; readonly status: string };
  return { id: id ?? '', status };
}

describe('an example', { timeout: 120_000 }, () => {
  it.each(['node-library', 'service', 'monorepo'] as const)(
    '%s goes the same way on a server and on a laptop',
    async (name) => {
      const files = { '.pipeline.yaml': example(name), ...FILES[name] };
      const { id } = await pushed(name, files);
      const { events } = await readStream(`${server.url}/pipeline/${id}/logs`, server.apiKey);
      const onServer = events.map(({ event, data }) => ({ ...data, type: event }));
      expect(outlineOf(onServer)['']).toEqual(['pipeline_completed SUCCESS']);
      const folder = join(home.path, name);
      execFileSync('git', ['clone', '-q', repository.url, folder]);
      const { stdout } = await promisify(execFile)(process.execPath, [CLI, 'run', '--json'], {
        cwd: folder,
        env: { ...process.env, XDG_CACHE_HOME: join(home.path, 'cache') },
      });
      const lines = stdout.split('\n').filter((line) => line !== '');
      expect(outlineOf(lines.map((line) => JSON.parse(line) as Shown))).toEqual(outlineOf(onServer));
    },
  );

  it('monorepo starts for a change of a package alone, and finds what it has fetched', async () => {
    const files = { '.pipeline.yaml': example('monorepo'), ...FILES.monorepo };
    const first = await pushed('filtered', files, ['docs/a.txt', 'packages/api/README.md']);
    expect(first.status).toBe('Skipped');
    const linesOf = async (): Promise<readonly string[]> => {
      const next = { ...files, 'packages/api/x': String(pushes) };
      const { id } = await pushed('filtered', next, ['packages/api/x']);
      const { events } = await readStream(`${server.url}/pipeline/${id}/logs`, server.apiKey);
      return events.filter(({ event }) => event === 'stage_log').map(({ data: { line } }) => String(line));
    };
    expect(await linesOf()).toEqual(
      expect.arrayContaining(['fetched one 1.0', 'fetched two 2.0', 'built with one 1.0', 'built with two 2.0']),
    );
    // Entries follow the commit of the success, as documents do.
    const list = '{ caches(repository: "git_host_a/examples/filtered") { key } }';
    await expect
      .poll(async () => (await server.graphql<{ caches: unknown[] }>(list, {})).data.caches.length, { timeout: 60_000 })
      .toBe(2);
    const again = await linesOf();
    expect(again).toEqual(expect.arrayContaining(['built with one 1.0', 'built with two 2.0']));
    expect(again.filter((line) => line.startsWith('fetched'))).toEqual([]);
  });

  it('release-with-token deploys to a target that knows the server by its published keys alone', async () => {
    const taken: JWTPayload[] = [];
    const target = await targetOf(taken);
    try {
      const release = [
        'body="{\\"version\\":\\"$1\\",\\"target\\":\\"$2\\"}"',
        'BODY="$body" TOKEN="$(cat "$3")" URL="$4" node --input-type=module -e \'',
        '  const { BODY: body, TOKEN, URL: url } = process.env;',
        '  const answer = await fetch(url, { method: "POST", headers: { authorization: `Bearer ${TOKEN}` }, body });',
        '  console.log(answer.status, await answer.text());',
        "'",
      ].join('\n');
      const { port } = target.address() as AddressInfo;
      const text = example('release-with-token').replace('http://127.0.0.1:8080', `http://127.0.0.1:${port}`);
      await pushed('release', {
        '.pipeline.yaml': text.replace('./release.sh', 'sh release.sh'),
        'release.sh': release,
      });
      const { data, errors } = await server.graphql<{ dispatchPipeline: { run: { id: string; status: string } } }>(
        `mutation { dispatchPipeline(provider: "git_host_a", repository: "examples/release", ref: "main", waitSeconds: 60,
          inputs: [{key: "version", value: "1.2.3"}]) { run { id status } } }`,
      );
      expect(errors).toBeUndefined();
      const { id, status } = data.dispatchPipeline.run;
      const { events } = await readStream(`${server.url}/pipeline/${id}/logs`, server.apiKey);
      const lines = events.filter(({ event }) => event === 'stage_log').map(({ data: { line } }) => line);
      expect([status, lines]).toEqual(['SUCCESS', ['200 released 1.2.3 to staging']]);
      expect(taken).toMatchObject([
        {
          sub: 'tenant:service:repo:git_host_a/examples%2Frelease:ref:refs%2Fheads%2Fmain',
          stage: 'release',
          run_id: id,
        },
      ]);
    } finally {
      target.close();
    }
  });
});

/** Takes a release of who shows a token of this repository's, for itself. */
async function targetOf(taken: JWTPayload[]): Promise<Server> {
  const target = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      void (async () => {
        const discovered = await fetch(`${server.url}/.well-known/openid-configuration`);
        const { issuer, jwks_uri: keys } = (await discovered.json()) as { issuer: string; jwks_uri: string };
        const token = (request.headers.authorization ?? '').replace('Bearer ', '');
        const { payload } = await jwtVerify(token, createRemoteJWKSet(new URL(keys)), {
          issuer,
          audience: 'https://deploy.example',
        });
        taken.push(payload);
        const asked = JSON.parse(Buffer.concat(chunks).toString()) as { version: string; target: string };
        response.end(`released ${asked.version} to ${asked.target}`);
      })().catch((error: unknown) => response.writeHead(403).end(String(error)));
    });
  });
  target.listen(0, '127.0.0.1');
  await once(target, 'listening');
  return target;
}
