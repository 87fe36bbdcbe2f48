/** The types of the dashboard's operations, made from the schema and from what `app/api/documents.ts` asks for, and from no more. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import {
  buildSchema,
  getNamedType,
  isEnumType,
  isInputObjectType,
  isListType,
  isNonNullType,
  isObjectType,
  isScalarType,
  Kind,
  parse,
  typeFromAST,
  validate,
  type GraphQLInputType,
  type GraphQLObjectType,
  type GraphQLOutputType,
  type GraphQLSchema,
  type OperationDefinitionNode,
  type SelectionSetNode,
} from 'graphql';

const GATEWAY = fileURLToPath(new URL('../../gateway/src/', import.meta.url));

const SCALARS: Readonly<Record<string, string>> = {
  String: 'string',
  Int: 'number',
  Float: 'number',
  Boolean: 'boolean',
  ID: 'string',
};

/** As the gateway has it, out of its sources. */
export function schemaOfGateway(): GraphQLSchema {
  const texts = readdirSync(GATEWAY, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts'))
    .toSorted()
    .map((name) => readFileSync(join(GATEWAY, name), 'utf8'))
    .flatMap((source) => [...source.matchAll(/\/\* GraphQL \*\/ `([^`]+)`/g)].map(([, text = '']) => text));
  // The one that defines `Query` before those that extend it.
  return buildSchema(
    texts.toSorted((a, b) => Number(/^\s*extend/u.test(a)) - Number(/^\s*extend/u.test(b))).join('\n'),
  );
}

/** The module `app/api/operations.ts`. Throws where an operation does not fit the schema. */
export function operationTypes(schema: GraphQLSchema, documents: Readonly<Record<string, string>>): string {
  const enums = new Set<string>();
  const operations = Object.entries(documents).map(([name, text]) => {
    const document = parse(text);
    const [problem] = validate(schema, document);
    if (problem !== undefined) throw new RangeError(`${name}: ${problem.message}`);
    const [operation] = document.definitions;
    if (operation?.kind !== Kind.OPERATION_DEFINITION || operation.name?.value !== name)
      throw new RangeError(`${name}: its operation has another name`);
    return [
      `  readonly ${name}: {`,
      `    readonly variables: ${variablesOf(schema, operation, enums)};`,
      `    readonly data: ${dataOf(rootOf(schema, operation), operation.selectionSet, '    ', enums)};`,
      '  };',
    ].join('\n');
  });
  return [
    '/** Made from the schema by `test/operations.ts`: `npm test -- services/dashboard/test/operations.test.ts -u` makes it anew. */',
    '',
    ...[...enums].toSorted().flatMap((name) => [enumOf(schema, name), '']),
    'export interface Operations {',
    ...operations,
    '}',
    '',
  ].join('\n');
}

function rootOf(schema: GraphQLSchema, operation: OperationDefinitionNode): GraphQLObjectType {
  const root = schema.getRootType(operation.operation);
  if (root === null || root === undefined) throw new RangeError(`the schema has no ${operation.operation}`);
  return root;
}

function variablesOf(schema: GraphQLSchema, operation: OperationDefinitionNode, enums: Set<string>): string {
  const rows = (operation.variableDefinitions ?? []).map(({ variable, type }) => {
    const given = typeFromAST(schema, type as never) as GraphQLInputType | undefined;
    if (given === undefined) throw new RangeError(`there is no type of $${variable.name.value}`);
    const text = inputOf(given, enums);
    return `      readonly ${variable.name.value}${isNonNullType(given) ? '' : '?'}: ${text}${isNonNullType(given) ? '' : ' | undefined'};`;
  });
  return rows.length === 0 ? 'Record<string, never>' : `{\n${rows.join('\n')}\n    }`;
}

function inputOf(type: GraphQLInputType, enums: Set<string>): string {
  if (isNonNullType(type)) return inputOf(type.ofType, enums).replace(/ \| null$/u, '');
  if (isListType(type)) return `readonly ${grouped(inputOf(type.ofType as GraphQLInputType, enums))}[] | null`;
  if (isInputObjectType(type)) {
    const fields = Object.values(type.getFields()).map(
      (field) => `readonly ${field.name}: ${inputOf(field.type, enums)}`,
    );
    return `{ ${fields.join('; ')} } | null`;
  }
  return `${leafOf(type, enums)} | null`;
}

function dataOf(type: GraphQLObjectType, selections: SelectionSetNode, indent: string, enums: Set<string>): string {
  const inner = `${indent}  `;
  const rows = selections.selections.map((selection) => {
    if (selection.kind !== Kind.FIELD) throw new RangeError('documents of the dashboard have fields alone');
    const field = type.getFields()[selection.name.value];
    if (field === undefined) throw new RangeError(`there is no ${type.name}.${selection.name.value}`);
    const name = selection.alias?.value ?? selection.name.value;
    return `${inner}readonly ${name}: ${outputOf(field.type, selection.selectionSet, inner, enums)};`;
  });
  return `{\n${rows.join('\n')}\n${indent}}`;
}

function outputOf(
  type: GraphQLOutputType,
  selections: SelectionSetNode | undefined,
  indent: string,
  enums: Set<string>,
): string {
  if (isNonNullType(type)) return outputOf(type.ofType, selections, indent, enums).replace(/ \| null$/u, '');
  if (isListType(type))
    return `readonly ${grouped(outputOf(type.ofType as GraphQLOutputType, selections, indent, enums))}[] | null`;
  if (isObjectType(type) && selections !== undefined) return `${dataOf(type, selections, indent, enums)} | null`;
  return `${leafOf(getNamedType(type), enums)} | null`;
}

function leafOf(type: { readonly name: string }, enums: Set<string>): string {
  if (isEnumType(type)) {
    enums.add(type.name);
    return type.name;
  }
  const scalar = isScalarType(type) ? SCALARS[type.name] : undefined;
  if (scalar === undefined) throw new RangeError(`not understood: the type ${type.name}`);
  return scalar;
}

function enumOf(schema: GraphQLSchema, name: string): string {
  const type = schema.getType(name);
  if (!isEnumType(type)) throw new RangeError(`not understood: the type ${name}`);
  return `export type ${name} = ${type
    .getValues()
    .map((value) => `'${value.name}'`)
    .join(' | ')};`;
}

function grouped(text: string): string {
  return text.includes(' | ') && !text.startsWith('{') ? `(${text})` : text.endsWith(' | null') ? `(${text})` : text;
}
