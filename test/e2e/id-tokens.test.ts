/** Id tokens on a server as a user has it: in the stage's file, masked in its log, verified by an OpenID client by discovery alone. */
import { chmodSync, existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createRemoteJWKSet, jwtVerify } from 'jose';
import { allowInsecureRequests, discovery } from 'openid-client';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { startServer, temporaryFolder, TRIGGER, type RunningServer } from '../support/server.ts';
import { readStream } from '../support/sse.ts';
import { until } from '../support/wait.ts';

interface Ended {
  readonly id: string;
  readonly status: string;
  readonly stages: readonly { readonly reason: string | null }[];
}

let server: RunningServer;
beforeAll(async () => {
  server = await startServer({
    env: { SERVICE_STAGE_UIDS: process.getuid?.() === 0 ? '300100-300199' : 'off' },
  });
}, 90_000);
afterAll(() => server.stop());

async function run(yaml: string): Promise<Ended> {
  const { data, errors } = await server.graphql<{ triggerPipeline: { run: Ended } }>(TRIGGER, {
    yaml,
    waitSeconds: 60,
  });
  expect(errors).toBeUndefined();
  return data.triggerPipeline.run;
}

async function kept(run: string, path: string): Promise<string> {
  const headers = { authorization: `Bearer ${server.apiKey}` };
  return await (await fetch(`${server.url}/pipeline/${run}/artifacts/deploy/${path}`, { headers })).text();
}

it('a stage has a token for each audience, which nothing but the published keys verifies', async () => {
  const { id, status } = await run(`pipeline: {name: release}
stages:
  deploy:
    run: |
      [ "$(ls -l "$SERVICE_ID_TOKEN_FILE" | cut -c1-10)" = -rw------- ]
      cp "$SERVICE_ID_TOKEN_FILE" first
      cp "$OTHER_TOKEN" second
      cat first second
    id_token: [{audience: 'https://sts.example'}, {audience: other, variable: OTHER_TOKEN}]
    artifacts: [first, second]
`);
  const { events } = await readStream(`${server.url}/pipeline/${id}/logs`, server.apiKey);
  const lines = events.filter(({ event }) => event === 'stage_log').map(({ data: { line } }) => String(line));
  expect([status, lines.toSorted()]).toEqual(['SUCCESS', ['***', expect.stringMatching(/^kept 2 files/)]]);
  const config = await discovery(new URL(server.url), 'anybody', undefined, undefined, {
    execute: [allowInsecureRequests],
  });
  const { issuer, jwks_uri: keys = '' } = config.serverMetadata();
  const set = createRemoteJWKSet(new URL(keys));
  const { payload } = await jwtVerify(await kept(id, 'first'), set, { issuer, audience: 'https://sts.example' });
  expect(payload).toMatchObject({
    ...{ iss: server.url, sub: 'tenant:service:pipeline:release', tenant: 'service', run_id: id, stage: 'deploy' },
    ...{ attempt: 1, pipeline: 'release', trigger: 'api', actor: 'api-key' },
  });
  expect((payload.exp ?? 0) - (payload.iat ?? 0)).toBeLessThanOrEqual(3_600);
  await expect(jwtVerify(await kept(id, 'second'), set, { issuer, audience: 'https://sts.example' })).rejects.toThrow(
    /aud/,
  );
  await jwtVerify(await kept(id, 'second'), set, { issuer, audience: 'other' });
}, 120_000);

function filesWith(text: string): readonly string[] {
  return readdirSync(server.dataDir, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .filter((path) => {
      try {
        return readFileSync(path).includes(text);
      } catch {
        // It has just been removed.
        return false;
      }
    });
}

it('no disk holds a token, neither while its stage runs nor after it', { timeout: 120_000 }, async () => {
  const shared = temporaryFolder('penstock-id-tokens-');
  chmodSync(shared.path, 0o777);
  try {
    const [copy, go] = [join(shared.path, 'token'), join(shared.path, 'go')];
    const running = run(`pipeline: {name: canary}
stages:
  deploy:
    id_token: {audience: 'https://sts.example'}
    artifacts: seen
    run: |
      stat -f -c 'file system: %T' "$SERVICE_ID_TOKEN_FILE" >seen
      cp "$SERVICE_ID_TOKEN_FILE" ${copy}.part; chmod 644 ${copy}.part; mv ${copy}.part ${copy}
      cat "$SERVICE_ID_TOKEN_FILE"
      until [ -e ${go} ]; do sleep 0.05; done
  after:
    after: deploy
    run: '[ "$(ls -A /dev/shm | grep -c penstock)" = 0 ]'
`);
    await until('the stage to have its token', () => existsSync(copy), 60_000);
    const [, , signature = ''] = readFileSync(copy, 'utf8').split('.');
    expect(signature.length).toBeGreaterThan(40);
    expect(filesWith(signature)).toEqual([]);
    writeFileSync(go, '');
    const { id, status } = await running;
    expect(status).toBe('SUCCESS');
    expect(filesWith(signature)).toEqual([]);
    expect(await kept(id, 'seen')).toMatch(/^file system: (?:tmpfs|ramfs)\n$/);
    // What is there is looked into at all.
    expect(filesWith('SQLite format 3').length).toBeGreaterThan(0);
  } finally {
    shared.remove();
  }
});
