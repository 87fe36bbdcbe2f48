/** docs/api.md says of the API what the code has: `npm test -- services/gateway/test/api-document.test.ts -u` makes it anew. */
import { readdirSync, readFileSync } from 'node:fs';
import { buildSchema, parse, validate } from 'graphql';
import { describe, expect, it } from 'vitest';
import { graphqlReference, registeredRoutes, routesReference, schemaText, withReference } from './api-reference.ts';

const PAGE = new URL('../../../docs/api.md', import.meta.url);

describe('docs/api.md', () => {
  it('has every query, mutation, type, argument, route and code of the code', async () => {
    await expect(withReference(readFileSync(PAGE, 'utf8'))).toMatchFileSnapshot('../../../docs/api.md');
  });
});

describe('the reference', () => {
  it('has a row for an operation and an argument that is added, and none for one without a description', () => {
    expect(graphqlReference('type Query { "Says so." told(what: Int): [String!]! }')).toContain(
      '| `told` | `what: Int` | `[String!]!` | Says so. |',
    );
    expect(() => graphqlReference('type Query { told: String }')).toThrow("'told' has no description");
  });

  it('cannot be made where a route has no meaning, nor where one is gone', () => {
    const routes = registeredRoutes();
    const added = { methods: 'GET', path: '/added', tier: 'read', service: 'gateway' };
    expect(() => routesReference([...routes, added])).toThrow('GET /added');
    expect(() => routesReference(routes.slice(1))).toThrow('no service has');
  });
});

describe('the examples of GraphQL in documents', () => {
  const folder = new URL('../../../docs/', import.meta.url);
  const examples = readdirSync(folder)
    .filter((name) => name.endsWith('.md'))
    .flatMap((name) =>
      [...readFileSync(new URL(name, folder), 'utf8').matchAll(/^```graphql\n(.*?)^```/gms)].flatMap(([, text = '']) =>
        // Several of one block are operations of their own, which have no names.
        text
          .split(/^(?=mutation|query|\{)/m)
          .filter((operation) => operation.trim() !== '')
          .map((operation) => ({ name, operation })),
      ),
    );
  const schema = buildSchema(schemaText());

  it('are there', () => expect(examples.length).toBeGreaterThan(8));

  it.each(examples)('$name has one that the schema takes: $operation', ({ operation }) => {
    expect(validate(schema, parse(operation)).map(({ message }) => message)).toEqual([]);
  });
});
