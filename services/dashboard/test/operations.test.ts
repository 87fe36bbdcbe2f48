/** What the dashboard asks for is what the gateway has, and its types are made from that. */
import { describe, expect, it } from 'vitest';
import { documents } from '../app/api/documents.ts';
import { operationTypes, schemaOfGateway } from './operations.ts';

describe('the operations of the dashboard', () => {
  const schema = schemaOfGateway();

  it('fit the schema, and `app/api/operations.ts` has their types', async () => {
    await expect(operationTypes(schema, documents)).toMatchFileSnapshot('../app/api/operations.ts');
  });

  it('are refused where the schema has no such field or argument', () => {
    expect(() => operationTypes(schema, { Gone: 'query Gone { run(id: "1") { colour } }' })).toThrow(
      'Cannot query field "colour"',
    );
    expect(() => operationTypes(schema, { Gone: 'query Gone { run(number: 1) { id } }' })).toThrow('number');
  });
});
