/** GraphQL over HTTP: the audits of the package `graphql-http`, the two media types, and what is not shown without introspection. */
import type { AddressInfo } from 'node:net';
import type { FastifyInstance } from 'fastify';
import { getIntrospectionQuery } from 'graphql';
import { serverAudits } from 'graphql-http';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { makeWorld, type World } from './harness.ts';

let world: World;
beforeAll(async () => {
  world = await makeWorld();
});
afterEach(() => world.reset());
afterAll(() => world.close());

const NEWER = 'application/graphql-response+json';

/** Audits that are not passed, and why not. */
const DEVIATIONS = {
  '5A70 MAY accept application/x-www-form-urlencoded formatted GET requests':
    'GET /graphql is 405: no address that a page of another site can link to reaches the API.',
  'D6D5 MAY allow URL-encoded JSON string {variables} parameter in GETs when accepting application/graphql-response+json':
    'As above.',
  '6A70 MAY allow URL-encoded JSON string {variables} parameter in GETs when accepting application/json': 'As above.',
} as const;

describe('the audits of GraphQL over HTTP', () => {
  it('every MUST is passed, and every SHOULD and MAY but those with a reason', async () => {
    const app = await world.gateway();
    await app.listen({ host: '127.0.0.1', port: 0 });
    const { port } = app.server.address() as AddressInfo;
    const failed: string[] = [];
    for (const audit of serverAudits({ url: `http://127.0.0.1:${port}/graphql` })) {
      const result = await audit.fn();
      if (result.status !== 'ok') failed.push(`${audit.id} ${audit.name}`);
    }
    expect(failed.filter((name) => name.includes('MUST'))).toEqual([]);
    expect(failed.sort()).toEqual(Object.keys(DEVIATIONS).sort());
  });
});

interface Posted {
  readonly status: number;
  readonly type: unknown;
  readonly body: {
    readonly data?: unknown;
    readonly errors?: readonly { readonly message: string; readonly extensions: { readonly code: string } }[];
  };
}

async function post(app: FastifyInstance, payload: object, accept?: string): Promise<Posted> {
  const response = await app.inject({
    method: 'POST',
    url: '/graphql',
    payload: JSON.stringify(payload),
    headers: { 'content-type': 'application/json', ...(accept === undefined ? {} : { accept }) },
  });
  return { status: response.statusCode, type: response.headers['content-type'], body: response.json() };
}

describe('the media type of answers', () => {
  it.each([
    [undefined, 'application/json'],
    ['*/*', 'application/json'],
    ['application/json', 'application/json'],
    ['text/html', 'application/json'],
    [NEWER, NEWER],
    [`${NEWER}; charset=utf-8, application/json;q=0.9`, NEWER],
    [`application/json, ${NEWER};q=0.5`, 'application/json'],
    [`${NEWER};q=0`, 'application/json'],
    ['Application/GraphQL-Response+JSON', NEWER],
  ])('Accept: %s is answered as %s', async (accept, type) => {
    const { status, type: answered, body } = await post(await world.gateway(), { query: '{ health }' }, accept);
    expect([status, answered, body]).toEqual([200, `${type}; charset=utf-8`, { data: { health: 'ok' } }]);
  });

  it('what was not executed is 400 without data in the newer form, and 200 with data null in JSON', async () => {
    const app = await world.gateway();
    const variables = { query: 'query ($limit: Int) { runs(limit: $limit) { id } }', variables: { limit: 'x' } };
    for (const [payload, code] of [
      [{ query: '{' }, 'GRAPHQL_PARSE_FAILED'],
      [{ query: '{ nothing }' }, 'GRAPHQL_VALIDATION_FAILED'],
      [variables, 'BAD_USER_INPUT'],
    ] as const) {
      const newer = await post(app, payload, NEWER);
      expect([newer.status, 'data' in newer.body, newer.body.errors?.[0]?.extensions.code]).toEqual([400, false, code]);
      const older = await post(app, payload);
      expect([older.status, older.body.data, older.body.errors?.[0]?.extensions.code]).toEqual([200, null, code]);
    }
  });

  it('an operation that is refused for its authentication is 200 with data null in both', async () => {
    const app = await world.gateway();
    for (const accept of [undefined, NEWER]) {
      const { status, body } = await post(
        app,
        { query: 'mutation { cancelPipeline(id: "x") { cancelledStages } }' },
        accept,
      );
      expect([status, body.data, body.errors?.[0]?.extensions.code]).toEqual([200, null, 'UNAUTHENTICATED']);
    }
  });
});

describe('requests from pages of other sites', () => {
  it('only application/json is read: what a form or a plain script can send is 415, in every spelling', async () => {
    const app = await world.gateway();
    for (const type of [
      'text/plain',
      'text/plain; charset=utf-8',
      'application/x-www-form-urlencoded',
      'multipart/form-data; boundary=x',
      'text/plain; application/json',
      'application/graphql',
      'application/jsonp',
      'application/json-seq',
      'text/json',
      'application/json, text/plain',
      '',
    ]) {
      const response = await app.inject({
        method: 'POST',
        url: '/graphql',
        headers: { 'content-type': type },
        payload: '{"query":"{ health }"}',
      });
      expect([type, response.statusCode, response.json<{ error: string }>().error]).toEqual([
        type,
        415,
        'unsupported_media_type',
      ]);
    }
    for (const type of [
      'application/json',
      'APPLICATION/JSON',
      'application/json;charset=utf-8',
      'application/json ; charset="utf-8"',
    ]) {
      expect(
        (
          await app.inject({
            method: 'POST',
            url: '/graphql',
            headers: { 'content-type': type },
            payload: '{"query":"{ health }"}',
          })
        ).statusCode,
      ).toBe(200);
    }
  });

  it('a GET executes nothing', async () => {
    const app = await world.gateway();
    const response = await app.inject(
      '/graphql?query=mutation%20%7B%20cancelPipeline(id%3A%20%22x%22)%20%7B%20cancelledStages%20%7D%20%7D',
    );
    expect([response.statusCode, response.headers['allow']]).toEqual([405, 'OPTIONS, POST']);
  });
});

describe('limits of documents', () => {
  const trigger = (count: number): string =>
    `mutation { ${Array.from({ length: count }, (_, index) => `t${index}: triggerPipeline(yaml: "x") { run { id } }`).join(' ')} }`;
  const hostile = {
    'depth 3,000': `{ ${'a { '.repeat(3_000)} b ${'}'.repeat(3_000)} }`,
    '10,000 aliases': `{ ${Array.from({ length: 10_000 }, (_, index) => `a${index}: health`).join(' ')} }`,
    'a fragment bomb': `{ ...f0 } ${Array.from({ length: 25 }, (_, index) => `fragment f${index} on Query { ...f${index + 1} ...f${index + 1} }`).join(' ')} fragment f25 on Query { health }`,
    '5,000 directives': `{ health ${'@skip(if: false) '.repeat(5_000)} }`,
    'directives on fragments': `{ ${Array.from({ length: 30 }, () => '...f @skip(if: false)').join(' ')} } fragment f on Query { health }`,
    '20 triggers in one request': trigger(20),
    '12 triggers, by fragments': `mutation { ...a ...b } fragment a on Mutation { ${Array.from({ length: 6 }, (_, index) => `a${index}: triggerPipeline { run { id } }`).join(' ')} } fragment b on Mutation { ${Array.from({ length: 6 }, (_, index) => `b${index}: triggerPipeline { run { id } }`).join(' ')} }`,
    'a fragment within itself': 'fragment f on Query { ...f } { ...f }',
  };

  it.each(Object.entries(hostile))('%s is refused before anything is executed', async (_name, query) => {
    const { status, body } = await post(await world.gateway(), { query });
    expect([status, body.data, body.errors?.[0]?.extensions.code]).toEqual([
      200,
      null,
      expect.stringMatching(/^(?:GRAPHQL_(?:PARSE|VALIDATION)_FAILED|BAD_USER_INPUT)$/u),
    ]);
    expect(body.errors?.length).toBeLessThanOrEqual(2);
  });

  it('a page that asks for much in the usual way is answered', async () => {
    const app = await world.gateway();
    const fields =
      'id pipelineName status startedAt finishedAt stages { name status startedAt finishedAt outputs { key value } }';
    const query = `query Page { health version running: runs(limit: 20) { ...run } all: runs(limit: 100) { ...run } pipelineHealth(pipelineName: "a") { pipelineName stages { name runs } } } fragment run on PipelineRun { ${fields} }`;
    expect((await post(app, { query })).body.errors).toBeUndefined();
  });
});

describe('without introspection', () => {
  it('the schema is not shown: not by __schema, not by __type, not inside a fragment, not under another name', async () => {
    const app = await world.gateway({ introspection: false });
    for (const query of [
      getIntrospectionQuery(),
      '{ __schema { types { name } } }',
      '{ a: __type(name: "Query") { name } }',
      '{ health ...f } fragment f on Query { __schema { description } }',
      '{ ... on Query { __type(name: "Query") { name } } }',
      `{ __schema { types { name } } } # ${'x'.repeat(10_000)}`,
    ]) {
      const { status, body } = await post(app, { query });
      expect([status, body.data, body.errors?.[0]?.message]).toEqual([
        200,
        null,
        'Introspection is turned off on this server.',
      ]);
    }
    expect((await post(app, { query: '{ __typename health }' })).body).toEqual({
      data: { __typename: 'Query', health: 'ok' },
    });
  });

  it('a misspelt name gets no suggestion, and one where introspection is on', async () => {
    const misspelt = [
      { query: '{ healt }' },
      { query: '{ runs { i } }' },
      { query: '{ runs(limits: 1) { id } }' },
      { query: '{ ...f } fragment f on Quer { health }' },
      { query: 'query ($a: Strin) { run(id: $a) { id } }' },
      { query: `{ healt } # ${'x'.repeat(10_000)}` },
    ];
    const off = await world.gateway({ introspection: false });
    for (const payload of misspelt) {
      const { body } = await post(off, payload);
      expect([payload, body.errors?.length]).toEqual([payload, expect.any(Number)]);
      expect(JSON.stringify(body)).not.toMatch(/did you mean/iu);
    }
    expect((await post(await world.gateway(), { query: '{ healt }' })).body.errors?.[0]?.message).toContain(
      'Did you mean "health"?',
    );
  });
});
