/** The registry of a real server: packages up and down over HTTP, extensions in GraphQL, and a run that uses one. */
import { createHash } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { packFolder } from '@penstock/extension';
import { startServer, temporaryFolder, type RunningServer } from '../support/server.ts';

const PUBLISH =
  'mutation ($hash: String!, $visibility: String) { publishExtension(packageHash: $hash, visibility: $visibility) { created version { version packageHash } extension { id visibility } } }';
const VERSIONS =
  'query ($id: String!) { extensionVersions(extension_id: $id) { extensionId version packageHash sizeBytes readme changelog yanked publishedAt } }';
const TRIGGER =
  'mutation ($yaml: String!, $lock: [LockEntryInput!]) { triggerPipeline(yaml: $yaml, lock: $lock, waitSeconds: 60) { run { id status extensions { uses id version hash } stages { name status outputs { key value } } } } }';

let data: ReturnType<typeof temporaryFolder>;
let server: RunningServer;
beforeAll(async () => {
  data = temporaryFolder();
  server = await startServer({ dataDir: data.path });
});
afterAll(async () => {
  await server.stop();
  data.remove();
});

async function packageOf(
  version: string,
  greeting: string,
): Promise<{ readonly bytes: Buffer; readonly hash: string }> {
  const folder = await mkdtemp(join(tmpdir(), 'penstock-e2e-package-'));
  const manifest = [
    'id: utility/greet',
    `version: ${version}`,
    'description: Greets whoever is named',
    'inputs:',
    '  who:',
    '    type: string',
    '    required: true',
    'outputs: [greeting]',
    `run: echo "greeting=${greeting} $INPUT_WHO" >> "$SERVICE_OUTPUT"`,
    '',
  ].join('\n');
  await writeFile(join(folder, 'extension.yaml'), manifest);
  await writeFile(join(folder, 'README.md'), `# Greets ${version}\n`);
  const bytes = Buffer.from((await packFolder(folder)).bytes);
  await rm(folder, { recursive: true });
  return { bytes, hash: createHash('sha256').update(bytes).digest('hex') };
}

async function publish(version: string, greeting: string, visibility?: string): Promise<string> {
  const { bytes, hash } = await packageOf(version, greeting);
  const uploaded = await fetch(`${server.url}/registry/packages/${hash}`, {
    method: 'PUT',
    body: bytes,
    headers: { 'content-type': 'application/gzip', authorization: `Bearer ${server.apiKey}` },
  });
  expect(uploaded.status).toBe(201);
  const { data: answer, errors } = await server.graphql<{
    publishExtension: { created: boolean; version: { packageHash: string } };
  }>(PUBLISH, { hash, visibility });
  expect(errors).toBeUndefined();
  expect(answer.publishExtension).toMatchObject({
    created: true,
    version: { version, packageHash: hash },
    extension: { id: 'utility/greet', visibility: 'public' },
  });
  return hash;
}

const yamlOf = (uses: string, who = 'world'): string =>
  [
    'pipeline: { name: greeting }',
    'stages:',
    '  greet:',
    `    uses: ${uses}`,
    '    with:',
    `      who: ${JSON.stringify(who)}`,
  ].join('\n');

async function anonymous<T>(query: string, variables: Record<string, unknown> = {}): Promise<T> {
  const response = await fetch(`${server.url}/graphql`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ query, variables }),
  });
  return ((await response.json()) as { data: T }).data;
}

let first: string;

it('what is published is found by everybody, with every field of the specification', async () => {
  first = await publish('1.0.0', 'hello');
  await publish('1.1.0', 'hi');
  const fields = 'id name description category downloadCount createdAt updatedAt';
  const { extensions } = await anonymous<{ extensions: Record<string, string>[] }>(
    `{ extensions(query: "greets", category: "utility", limit: 5) { ${fields} } }`,
  );
  expect(extensions).toEqual([
    {
      id: 'utility/greet',
      name: 'greet',
      description: 'Greets whoever is named',
      category: 'utility',
      downloadCount: '0',
      createdAt: expect.stringMatching(/Z$/),
      updatedAt: expect.stringMatching(/Z$/),
    },
  ]);
  expect(
    (await anonymous<{ extension: unknown }>(`{ extension(id: "utility/greet") { ${fields} } }`)).extension,
  ).toEqual(extensions[0]);
  expect((await anonymous<{ extension: unknown }>('{ extension(id: "utility/unknown") { id } }')).extension).toBeNull();
  const { extensionVersions } = await anonymous<{ extensionVersions: unknown[] }>(VERSIONS, { id: 'utility/greet' });
  expect(extensionVersions).toMatchObject([
    { extensionId: 'utility/greet', version: '1.1.0', readme: '# Greets 1.1.0\n', changelog: null, yanked: false },
    { version: '1.0.0', packageHash: first, sizeBytes: String((await packageOf('1.0.0', 'hello')).bytes.length) },
  ]);
});

it('a run uses the newest version of the range, its inputs and its outputs', async () => {
  const { data: answer, errors } = await server.graphql<{ triggerPipeline: { run: unknown } }>(TRIGGER, {
    yaml: yamlOf('utility/greet@^1', '$(false) `false` "'),
  });
  expect(errors).toBeUndefined();
  expect(answer.triggerPipeline.run).toMatchObject({
    status: 'SUCCESS',
    extensions: [
      { uses: 'utility/greet@^1', id: 'utility/greet', version: '1.1.0', hash: (await packageOf('1.1.0', 'hi')).hash },
    ],
    stages: [{ name: 'greet', status: 'SUCCESS', outputs: [{ key: 'greeting', value: 'hi $(false) `false` "' }] }],
  });
});

it('a yanked version is used by a lock alone', async () => {
  const { errors } = await server.graphql(
    'mutation { yankExtensionVersion(id: "utility/greet", version: "1.1.0") { yanked } }',
  );
  expect(errors).toBeUndefined();
  const outputOf = async (variables: Record<string, unknown>): Promise<string | undefined> => {
    const { data: answer } = await server.graphql<{
      triggerPipeline: { run: { stages: { outputs: { value: string }[] }[] } };
    }>(TRIGGER, variables);
    return answer.triggerPipeline.run.stages[0]?.outputs[0]?.value;
  };
  expect(await outputOf({ yaml: yamlOf('utility/greet@^1') })).toBe('hello world');
  const lock = [
    { uses: 'utility/greet@^1', id: 'utility/greet', version: '1.1.0', hash: (await packageOf('1.1.0', 'hi')).hash },
  ];
  expect(await outputOf({ yaml: yamlOf('utility/greet@^1'), lock })).toBe('hi world');
});

it('what cannot be resolved refuses the trigger with its place and what may have been meant', async () => {
  const { errors } = await server.graphql<unknown>(TRIGGER, { yaml: yamlOf('utility/gret@^1') });
  expect(errors?.[0]?.extensions).toMatchObject({
    code: 'BAD_USER_INPUT',
    diagnostics: [{ line: 4, column: 11, path: 'stages.greet.uses', suggestion: "did you mean 'utility/greet'?" }],
  });
});

it('a package goes down in pieces, and a hostile one is refused with what is wrong', async () => {
  const { bytes } = await packageOf('1.0.0', 'hello');
  const [whole, half] = await Promise.all([
    fetch(`${server.url}/registry/packages/${first}`),
    fetch(`${server.url}/registry/packages/${first}`, { headers: { range: 'bytes=100-' } }),
  ]);
  expect([whole.status, whole.headers.get('etag'), half.status]).toEqual([200, `"${first}"`, 206]);
  expect(Buffer.from(await whole.arrayBuffer()).equals(bytes)).toBe(true);
  expect(Buffer.from(await half.arrayBuffer()).equals(bytes.subarray(100))).toBe(true);
  const junk = Buffer.from('this is no archive');
  const hash = createHash('sha256').update(junk).digest('hex');
  await fetch(`${server.url}/registry/packages/${hash}`, {
    method: 'PUT',
    body: junk,
    headers: { 'content-type': 'application/gzip', authorization: `Bearer ${server.apiKey}` },
  });
  const { errors } = await server.graphql(PUBLISH, { hash });
  expect(errors?.[0]).toMatchObject({
    message: expect.stringContaining('The package is refused'),
    extensions: { code: 'BAD_USER_INPUT' },
  });
});

it('after a SIGKILL everything that was published is there', async () => {
  const gone = new Promise((resolve) => server.child.once('exit', resolve));
  server.child.kill('SIGKILL');
  await gone;
  server = await startServer({ dataDir: data.path });
  const { extensions } = await anonymous<{ extensions: { id: string }[] }>('{ extensions(query: "greet") { id } }');
  expect(extensions.map(({ id }) => id)).toContain('utility/greet');
  const { data: answer } = await server.graphql<{ triggerPipeline: { run: { status: string } } }>(TRIGGER, {
    yaml: yamlOf('utility/greet@1.0.0'),
  });
  expect(answer.triggerPipeline.run.status).toBe('SUCCESS');
});
