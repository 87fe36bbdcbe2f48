/** What a document may be: its depth, its size, what it names, and what is said of one that is refused. */
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { getIntrospectionQuery } from 'graphql';
import { graphql, makeWorld, YAML, type World } from './harness.ts';

let world: World;
beforeAll(async () => {
  world = await makeWorld();
});
afterEach(() => world.reset());
afterAll(() => world.close());

describe('documents', () => {
  it('a text that is no GraphQL is GRAPHQL_PARSE_FAILED, one that does not fit the schema GRAPHQL_VALIDATION_FAILED', async () => {
    const app = await world.gateway();
    for (let count = 0; count < 2; count++) {
      expect(await graphql(app, '{ health')).toMatchObject({
        status: 200,
        data: null,
        errors: [{ extensions: { code: 'GRAPHQL_PARSE_FAILED' } }],
      });
      expect(await graphql(app, '{ nothing }')).toMatchObject({
        status: 200,
        data: null,
        errors: [{ extensions: { code: 'GRAPHQL_VALIDATION_FAILED' } }],
      });
    }
  });

  it('variables that do not fit are BAD_USER_INPUT, interpreted and compiled', async () => {
    const app = await world.gateway();
    const query = 'query ($limit: Int) { runs(limit: $limit) { id } }';
    for (const limit of ['1', 1.5, 2 ** 40, {}, [1, 2]]) {
      expect(await graphql(app, query, { variables: { limit } })).toMatchObject({
        status: 200,
        data: null,
        errors: [{ extensions: { code: 'BAD_USER_INPUT' } }],
      });
    }
    expect((await graphql(app, query, { variables: { limit: 1 } })).errors).toEqual([]);
  });

  it('the standard introspection query passes every limit', async () => {
    const app = await world.gateway();
    const answer = await graphql(
      app,
      getIntrospectionQuery({
        specifiedByUrl: true,
        directiveIsRepeatable: true,
        schemaDescription: true,
        inputValueDeprecation: true,
      }),
      { token: null },
    );
    expect(answer.errors).toEqual([]);
    expect(answer.data).toHaveProperty('__schema.types');
  });

  it('queries too deep, with too many aliases, tokens, directives or expanded fields are refused before they are validated', async () => {
    const app = await world.gateway();
    const bomb = `query { ...f0 } ${Array.from({ length: 25 }, (_, index) => `fragment f${index} on Query { ...f${index + 1} ...f${index + 1} }`).join(' ')} fragment f25 on Query { health }`;
    const hostile = {
      depth: `{ ${'a { '.repeat(40)} b ${'}'.repeat(40)} }`,
      'introspection depth': `{ __schema { types { ${'ofType { '.repeat(40)} name ${'}'.repeat(40)} } } }`,
      aliases: `{ ${Array.from({ length: 200 }, (_, index) => `a${index}: health`).join(' ')} }`,
      tokens: `{ ${'health '.repeat(3000)} }`,
      directives: `{ health ${'@skip(if: false) '.repeat(100)} }`,
      'fragment bomb': bomb,
    };
    for (const [name, query] of Object.entries(hostile)) {
      const answer = await graphql(app, query);
      // What counts tokens is the parser itself.
      const code = name === 'tokens' ? 'GRAPHQL_PARSE_FAILED' : 'BAD_USER_INPUT';
      expect([name, answer.status, answer.data, answer.errors[0]?.extensions['code']]).toEqual([name, 200, null, code]);
    }
  });

  it('a long text, with a pipeline file written into it, is executed like any other', async () => {
    const app = await world.gateway();
    const long = `# ${'x'.repeat(10_000)}`;
    const yaml = JSON.stringify(`${YAML}\n# ${'x'.repeat(10_000)}`);
    for (let count = 0; count < 3; count++) {
      expect(
        (await graphql(app, `mutation { triggerPipeline(yaml: ${yaml}, waitSeconds: 0) { run { status } } }`)).data,
      ).toEqual({ triggerPipeline: { run: { status: 'PENDING' } } });
      expect(
        await graphql(
          app,
          `
            {
              nothing
            }
            ${long}
          `,
        ),
      ).toMatchObject({ status: 200, errors: [{ extensions: { code: 'GRAPHQL_VALIDATION_FAILED' } }] });
      expect(
        await graphql(
          app,
          `
            query ($limit: Int) {
              runs(limit: $limit) {
                id
              }
            }
            ${long}
          `,
          { variables: { limit: 'x' } },
        ),
      ).toMatchObject({ status: 200, data: null, errors: [{ extensions: { code: 'BAD_USER_INPUT' } }] });
      expect(
        await graphql(
          app,
          `
            mutation {
              cancelPipeline(id: "x") {
                cancelledStages
              }
            }
            ${long}
          `,
          { token: null },
        ),
      ).toMatchObject({ status: 200, data: null, errors: [{ extensions: { code: 'UNAUTHENTICATED' } }] });
      expect(
        (
          await graphql(
            app,
            `
              query A {
                health
              }
              query B {
                version
              }
              ${long}
            `,
            { operationName: 'B' },
          )
        ).data,
      ).toEqual({ version: '0.6.0' });
    }
  });

  it('a document given as a JSON tree is no GraphQL', async () => {
    const app = await world.gateway();
    for (const query of [
      '{"kind":"Document","definitions":[]}',
      '{"kind":"Document"}',
      '[]',
      '5',
      'null',
      '"health"',
    ]) {
      expect(await graphql(app, query)).toMatchObject({ status: 200, data: null });
    }
  });
});
