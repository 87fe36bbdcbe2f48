/** One subject of the schema: its types (`extend type Query { … }`) and the resolvers of its fields. */
export interface GraphqlModule {
  readonly sdl: string;
  /** By type, then by field. */
  readonly resolvers: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
}
