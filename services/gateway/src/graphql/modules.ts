/** The schema's parts, one a subject: each brings its types (`extend type Query { … }`) and the resolvers of its fields. */
import { makeResolvers, type ResolverOptions } from './resolvers.ts';
import { SCHEMA } from './schema.ts';

export interface GraphqlModule {
  readonly sdl: string;
  /** By type, then by field. */
  readonly resolvers: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
}

export function graphqlModules(options: ResolverOptions): GraphqlModule {
  const modules: readonly GraphqlModule[] = [{ sdl: SCHEMA, resolvers: makeResolvers(options) }];
  const resolvers: Record<string, Record<string, unknown>> = {};
  for (const module of modules) {
    for (const [type, fields] of Object.entries(module.resolvers)) resolvers[type] = { ...resolvers[type], ...fields };
  }
  return { sdl: modules.map(({ sdl }) => sdl).join('\n'), resolvers };
}
