/**
 * The graphql package as Mercurius sees it. It exists as CommonJS and as a module, and a schema made by one is refused by
 * the other; `require` takes the CommonJS one under every loader.
 */
import { createRequire } from 'node:module';
import type * as Graphql from 'graphql';

export const { execute, GraphQLError, Kind, OperationTypeNode, parse, validate, visit } = createRequire(
  import.meta.url,
)('graphql') as typeof Graphql;
