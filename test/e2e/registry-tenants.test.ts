/** Two users of a real server publish, search, use and yank side by side, each blind to what is the other's alone. */
import { createHash, randomUUID } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { packFolder } from '@penstock/extension';
import { signAccessToken } from '@penstock/identity';
import { startServer, type RunningServer } from '../support/server.ts';

const JWT_SECRET = 'a-secret-of-a-test-that-is-long-enough';

interface Tenant {
  readonly name: string;
  readonly token: string | null;
}
interface Answer {
  readonly data: Record<string, unknown> | null;
  readonly errors?: readonly { readonly message: string; readonly extensions: Record<string, unknown> }[];
}

let server: RunningServer;
let a: Tenant;
let b: Tenant;
let free: Tenant;
const nobody: Tenant = { name: 'nobody', token: null };

beforeAll(async () => {
  server = await startServer({ env: { JWT_SECRET } });
  const login = async (name: string, tier: string): Promise<Tenant> => {
    const claims = {
      sub: randomUUID(),
      sid: randomUUID(),
      email: `${name}@example.com`,
      tier,
      admin: false,
      at: Date.now(),
    };
    return { name, token: await signAccessToken(JWT_SECRET, claims) };
  };
  [a, b, free] = await Promise.all([login('a', 'pro'), login('b', 'pro'), login('f', 'free')]);
});
afterAll(() => server.stop());

const headersOf = ({ token }: Tenant): Record<string, string> =>
  token === null ? {} : { authorization: `Bearer ${token}` };

async function ask(as: Tenant, query: string, variables: Record<string, unknown> = {}): Promise<Answer> {
  const response = await fetch(`${server.url}/graphql`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headersOf(as) },
    body: JSON.stringify({ query, variables }),
  });
  return (await response.json()) as Answer;
}

async function publish(
  as: Tenant,
  id: string,
  output: string,
  visibility: string,
  version = '1.0.0',
): Promise<{ readonly hash: string; readonly answer: Answer; readonly status: number }> {
  const folder = await mkdtemp(join(tmpdir(), 'penstock-e2e-package-'));
  await writeFile(
    join(folder, 'extension.yaml'),
    [
      `id: ${id}`,
      `version: ${version}`,
      `description: Says ${output}`,
      'outputs: [said]',
      `run: echo "said=${output}" >> "$SERVICE_OUTPUT"`,
      '',
    ].join('\n'),
  );
  const bytes = Buffer.from((await packFolder(folder)).bytes);
  await rm(folder, { recursive: true });
  const hash = createHash('sha256').update(bytes).digest('hex');
  const { status } = await fetch(`${server.url}/registry/packages/${hash}`, {
    method: 'PUT',
    body: bytes,
    headers: { 'content-type': 'application/gzip', ...headersOf(as) },
  });
  const answer = await ask(
    as,
    'mutation ($hash: String, $visibility: String) { publishExtension(packageHash: $hash, visibility: $visibility) { created } }',
    { hash, visibility },
  );
  return { hash, answer, status };
}

async function said(as: Tenant, uses: string): Promise<unknown> {
  const yaml = `pipeline: { name: says }\nstages:\n  say:\n    uses: ${uses}\n`;
  const { data, errors } = await ask(
    as,
    'mutation ($yaml: String) { triggerPipeline(yaml: $yaml, waitSeconds: 60) { run { status stages { outputs { value } } } } }',
    { yaml },
  );
  if (data === null) return errors?.[0];
  return (data['triggerPipeline'] as { run: { stages: { outputs: { value: string }[] }[] } }).run.stages[0]?.outputs[0]
    ?.value;
}

let privateHash: string;

it('both publish privately under the same name, and each uses its own', async () => {
  const [ofA, ofB] = [
    await publish(a, 'notify/tell', 'I am of a', 'private'),
    await publish(b, 'notify/tell', 'I am of b', 'private'),
  ];
  expect([ofA.status, ofB.status, ofA.answer, ofB.answer]).toEqual([
    201,
    201,
    { data: { publishExtension: { created: true } } },
    { data: { publishExtension: { created: true } } },
  ]);
  privateHash = ofA.hash;
  expect(await said(a, 'notify/tell@1')).toBe('I am of a');
  expect(await said(b, 'notify/tell@1')).toBe('I am of b');
});

it('a user of the free tier can neither upload nor publish', async () => {
  const { status, answer } = await publish(free, 'notify/free', 'free', 'public');
  expect(status).toBe(403);
  expect(answer.errors?.[0]?.extensions).toMatchObject({ code: 'FORBIDDEN' });
  const without = await publish(nobody, 'notify/free', 'free', 'public');
  expect(without.status).toBe(401);
  expect(without.answer).toMatchObject({ data: null, errors: [{ extensions: { code: 'UNAUTHENTICATED' } }] });
});

describe('what is private to a answers everybody else as what does not exist', () => {
  /** As far from every other name as the private one. */
  const NONE = 'vjkzxqw';
  beforeAll(async () => {
    privateHash = (await publish(a, 'deploy/wqxzkjv', 'hidden', 'private')).hash;
  });

  const questions: readonly (readonly [
    string,
    (name: string, hash: string) => readonly [query: string, variables: Record<string, unknown>],
  ])[] = [
    [
      'extension',
      (name) => ['query ($id: String) { extension(id: $id) { id description } }', { id: `deploy/${name}` }],
    ],
    [
      'extensions',
      (name) => ['query ($query: String) { extensions(query: $query, limit: 100) { id } }', { query: name }],
    ],
    ['extensions of a category', () => ['{ extensions(category: "deploy", limit: 100) { id } }', {}]],
    [
      'extensionVersions',
      (name) => [
        'query ($id: String) { extensionVersions(extension_id: $id) { version readme } }',
        { id: `deploy/${name}` },
      ],
    ],
    [
      'resolveExtensions',
      (name) => ['query ($uses: [String!]) { resolveExtensions(uses: $uses) { id } }', { uses: [`deploy/${name}@1`] }],
    ],
    [
      'resolveExtensions with a lock',
      (name, hash) => [
        'query ($uses: [String!], $lock: [LockEntryInput!]) { resolveExtensions(uses: $uses, lock: $lock) { id } }',
        {
          uses: [`deploy/${name}@1`],
          lock: [{ uses: `deploy/${name}@1`, id: `deploy/${name}`, version: '1.0.0', hash }],
        },
      ],
    ],
    [
      'triggerPipeline',
      (name) => [
        'mutation ($yaml: String) { triggerPipeline(yaml: $yaml) { run { id } } }',
        { yaml: `pipeline: { name: p }\nstages: { s: { uses: deploy/${name}@1 } }` },
      ],
    ],
    [
      'yankExtensionVersion',
      (name) => [
        'mutation ($id: String) { yankExtensionVersion(id: $id, version: "1.0.0") { version } }',
        { id: `deploy/${name}` },
      ],
    ],
    [
      'publishExtension of its hash',
      (_name, hash) => ['mutation ($hash: String) { publishExtension(packageHash: $hash) { created } }', { hash }],
    ],
  ];
  it.each(questions)('%s tells nobody whether it exists', async (_name, question) => {
    for (const caller of [b, free, nobody]) {
      const [real, none] = await Promise.all(
        [
          ['wqxzkjv', privateHash],
          [NONE, '0'.repeat(64)],
        ].map(async ([name = '', hash = '']) => {
          const text = JSON.stringify(await ask(caller, ...question(name, hash)));
          return text
            .replaceAll(name, 'NAME')
            .replaceAll(hash, 'HASH')
            .replaceAll(/"column":\d+/g, '"column":0');
        }),
      );
      expect(real).toBe(none);
    }
  });

  it('its package is answered like one that does not exist', async () => {
    for (const caller of [b, free, nobody]) {
      const answers = await Promise.all(
        [privateHash, '0'.repeat(64)].map(async (hash) => {
          const response = await fetch(`${server.url}/registry/packages/${hash}`, { headers: headersOf(caller) });
          const headers = [...response.headers].filter(([name]) => !/^(?:date|x-ratelimit|x-request-id$)/.test(name));
          return { status: response.status, headers, body: await response.text() };
        }),
      );
      expect(answers[0]).toEqual(answers[1]);
      expect(answers[0]?.status).toBe(404);
    }
    expect((await fetch(`${server.url}/registry/packages/${privateHash}`, { headers: headersOf(a) })).status).toBe(200);
  });
});

it('public ones are for everybody to find and use, and for their owner alone to change', async () => {
  await publish(a, 'utility/common', 'for all', 'public');
  for (const caller of [a, b, nobody])
    expect((await ask(caller, '{ extension(id: "utility/common") { id } }')).data).toEqual({
      extension: { id: 'utility/common' },
    });
  expect(await said(b, 'utility/common@^1')).toBe('for all');
  const { answer } = await publish(b, 'utility/common', 'taken over', 'public', '2.0.0');
  expect(answer.errors?.[0]).toMatchObject({
    message: "The name 'utility/common' belongs to somebody else.",
    extensions: { code: 'FORBIDDEN' },
  });
  const yank = 'mutation { yankExtensionVersion(id: "utility/common", version: "1.0.0") { yanked } }';
  expect((await ask(b, yank)).errors?.[0]?.extensions).toMatchObject({ code: 'FORBIDDEN' });
  expect((await ask(a, yank)).data).toEqual({ yankExtensionVersion: { yanked: true } });
  expect(await said(b, 'utility/common@^1')).toMatchObject({ extensions: { code: 'BAD_USER_INPUT' } });
});
