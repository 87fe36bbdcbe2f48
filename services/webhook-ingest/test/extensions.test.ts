/** What a pushed file's `uses` are resolved to: asked of the registry in whose name, and with which lock. */
import { answerCalls } from '@penstock/service';
import { formatLock, type ResolveRequest } from '@penstock/extension';
import { BadUserInput } from '@penstock/errors';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { githubPush, githubSignature, makeRepository, type TestRepository } from './repository.ts';
import { makeWorld, type RunningIngest, type World } from './world.ts';

const FILE = 'pipeline:\n  name: using\nstages:\n  build:\n    uses: build/tool@^1\n';
const MANIFEST = 'id: build/tool\nversion: 1.2.0\ndescription: A tool.\nrun: echo tool\n';
const RESOLVED = { uses: 'build/tool@^1', id: 'build/tool', version: '1.2.0', hash: 'a'.repeat(64) };
const SECRET = 'a-secret-of-the-server';

let world: World;
let repository: TestRepository;
let ingest: RunningIngest;
let asked: ResolveRequest[] = [];
let isKnown = true;

beforeAll(async () => {
  world = await makeWorld();
  repository = makeRepository();
  ingest = await world.ingest({ secrets: { git_host_a: SECRET } });
  answerCalls(world.bus, 'registry', {
    resolve: (request: ResolveRequest) => {
      asked.push(request);
      const message = "There is no extension 'build/tool'; did you mean 'build/tools'?";
      if (!isKnown)
        throw new BadUserInput(message, {
          unresolved: [{ uses: 'build/tool@^1', message, candidates: ['build/tools'] }],
        });
      return { extensions: [{ ...RESOLVED, manifest: MANIFEST }] };
    },
  });
});
afterAll(async () => {
  await world.close();
  repository.remove();
});
beforeEach(() => {
  asked = [];
  isKnown = true;
});

async function pushed(files: Readonly<Record<string, string>>, signed = true): Promise<Record<string, unknown>> {
  const payload = githubPush({ url: repository.url, commit: repository.commit(files) });
  const signature = signed ? { 'x-hub-signature-256': githubSignature(JSON.stringify(payload), SECRET) } : {};
  return (await (signed ? ingest : await world.ingest()).send(payload, { 'x-github-event': 'push', ...signature }))
    .body;
}

describe('a pushed file that uses an extension', () => {
  it('runs with what the registry answered, asked in the name of its tenant', async () => {
    const body = await pushed({ '.pipeline.yaml': FILE });
    expect(body).toMatchObject({ status: 'Success' });
    expect(asked).toMatchObject([{ caller: { tenant: 'service' }, uses: ['build/tool@^1'], lock: [] }]);
    expect(await world.reads.view(String(body['run_id']), ['service'])).toMatchObject({ extensions: [RESOLVED] });
  });

  it('brings along the lock of its repository', async () => {
    expect(await pushed({ '.pipeline.yaml': FILE, '.pipeline.lock': formatLock([RESOLVED]) })).toMatchObject({
      status: 'Success',
    });
    expect(asked).toMatchObject([{ lock: [RESOLVED] }]);
  });

  it('fails at a lock that is none, and at an extension that nobody knows, before anything runs', async () => {
    expect(await pushed({ '.pipeline.yaml': FILE, '.pipeline.lock': 'nonsense' })).toMatchObject({
      status: 'Failed',
      error: { code: 'pipeline_file', message: expect.stringContaining("make it anew with 'penstock lock --update'") },
    });
    expect(asked).toEqual([]);
    isKnown = false;
    expect(await pushed({ '.pipeline.yaml': FILE })).toMatchObject({
      status: 'Failed',
      error: {
        code: 'pipeline_file',
        message: expect.stringMatching(
          /^line \d+, column \d+: There is no extension 'build\/tool'; did you mean 'build\/tools'\?$/,
        ),
      },
    });
    const more = await pushed({ '.pipeline.yaml': `${FILE}\nsteps: {}\n` });
    expect(more).toMatchObject({
      error: { message: expect.stringMatching(/There is no extension 'build\/tool'.*; line \d+, column 1: .*steps/) },
    });
  });

  it('that nobody signed sees what everybody sees: no private extension of the tenant', async () => {
    expect(await pushed({ '.pipeline.yaml': FILE }, false)).toMatchObject({ status: 'Success' });
    expect(asked).toMatchObject([{ caller: { tenant: null } }]);
  });
});
