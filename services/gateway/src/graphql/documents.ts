/**
 * Query texts, checked before Mercurius sees them: parsed with a bound on tokens, and bounded in depth, aliases,
 * directives and cost, with fragments counted as often as they are spread. Validation and execution cost more
 * than linear time in these, so they come first. Texts that passed are remembered.
 */
import type { DocumentNode, FragmentDefinitionNode, GraphQLError as SyntaxProblem, SelectionSetNode } from 'graphql';
import { GraphQLError, Kind, OperationTypeNode, parse } from './library.ts';

/** The standard introspection query has about 400; a page of hand-written GraphQL about 300. A pipeline file is one. */
export const TOKENS_MAX = 1_000;
/** The deepest useful query of this schema has five levels. */
const DEPTH_MAX = 8;
/** Below `__schema` and `__type`: the standard introspection query reaches 13. */
const INTROSPECTION_DEPTH_MAX = 20;
const ALIASES_MAX = 15;
const DIRECTIVES_MAX = 20;
/** Each field costs one after all fragments are spread, and a mutation costs more. */
const COST_MAX = 1_000;
/** A mutation's own field is a durable write, and one request may hold several. */
const MUTATION_COST = 100;

/** How many texts are remembered as good, and how many Mercurius keeps parsed and compiled. */
export const REMEMBERED_MAX = 512;
/** Longer texts, with a pipeline file written into them, are all different: remembering them would only cost memory. */
export const REMEMBERED_LENGTH_MAX = 8 * 1024;

export type DocumentProblem =
  | { readonly kind: 'syntax'; readonly error: SyntaxProblem }
  | { readonly kind: 'limit'; readonly message: string };

export class Documents {
  readonly #good = new Set<string>();
  readonly #introspection: boolean;

  /** `introspection`: whether documents may ask for the schema. */
  constructor(introspection: boolean) {
    this.#introspection = introspection;
  }

  /** Null: within the limits, and well-formed; whether it fits the schema is for the validation to say. */
  check(source: string): DocumentProblem | null {
    if (this.#good.has(source)) return null;
    let document: DocumentNode;
    try {
      document = parse(source, { maxTokens: TOKENS_MAX, noLocation: true });
    } catch (error) {
      if (error instanceof GraphQLError) return { kind: 'syntax', error };
      throw error;
    }
    const message = limitProblem(document, this.#introspection);
    if (message !== null) return { kind: 'limit', message };
    if (source.length > REMEMBERED_LENGTH_MAX) return null;
    if (this.#good.size >= REMEMBERED_MAX) this.#good.delete(this.#good.keys().next().value ?? '');
    this.#good.add(source);
    return null;
  }
}

interface Cost {
  depth: number;
  fields: number;
  /** How many of the fields are at the top. */
  roots: number;
  aliases: number;
  directives: number;
  introspects: boolean;
}

const nothing = (): Cost => ({ depth: 0, fields: 0, roots: 0, aliases: 0, directives: 0, introspects: false });

function limitProblem(document: DocumentNode, introspection: boolean): string | null {
  const fragments = new Map<string, FragmentDefinitionNode>();
  for (const definition of document.definitions) {
    if (definition.kind === Kind.FRAGMENT_DEFINITION) fragments.set(definition.name.value, definition);
  }
  const costs = new FragmentCosts(fragments);
  const total = nothing();
  let weight = 0;
  for (const definition of document.definitions) {
    if (definition.kind === Kind.OPERATION_DEFINITION) {
      const cost = costs.ofSelections(definition.selectionSet);
      total.depth = Math.max(total.depth, cost.depth);
      total.fields += cost.fields;
      total.aliases += cost.aliases;
      total.directives += cost.directives + (definition.directives?.length ?? 0);
      total.introspects ||= cost.introspects;
      if (definition.operation === OperationTypeNode.MUTATION) weight += cost.roots * MUTATION_COST;
    } else if (definition.kind === Kind.FRAGMENT_DEFINITION) {
      total.directives += definition.directives?.length ?? 0;
    }
  }
  if (total.depth > DEPTH_MAX) return `The query is too deep: at most ${DEPTH_MAX} levels.`;
  if (total.fields + weight > COST_MAX) {
    return `The query costs too much: at most ${COST_MAX}, 1 for each field, fragments counted where they are spread, and ${MUTATION_COST} more for each mutation.`;
  }
  if (total.aliases > ALIASES_MAX) return `The query has too many aliases: at most ${ALIASES_MAX}.`;
  if (total.directives > DIRECTIVES_MAX) return `The query has too many directives: at most ${DIRECTIVES_MAX}.`;
  if (total.introspects && !introspection) return 'Introspection is turned off on this server.';
  return null;
}

/** Each fragment is counted once, however often it is spread: two to the power of 25 spreads are one multiplication each. */
class FragmentCosts {
  readonly #fragments: ReadonlyMap<string, FragmentDefinitionNode>;
  readonly #known = new Map<string, Cost>();

  constructor(fragments: ReadonlyMap<string, FragmentDefinitionNode>) {
    this.#fragments = fragments;
  }

  ofSelections(set: SelectionSetNode): Cost {
    const cost = nothing();
    for (const selection of set.selections) {
      cost.directives += selection.directives?.length ?? 0;
      if (selection.kind === Kind.FIELD) {
        cost.fields += 1;
        cost.roots += 1;
        cost.introspects ||= INTROSPECTION.has(selection.name.value);
        if (selection.alias !== undefined) cost.aliases += 1;
        const below = selection.selectionSet === undefined ? undefined : this.ofSelections(selection.selectionSet);
        addTo(cost, below, 1, INTROSPECTION.has(selection.name.value));
      } else if (selection.kind === Kind.INLINE_FRAGMENT) {
        addTo(cost, this.ofSelections(selection.selectionSet), 0, false);
      } else {
        addTo(cost, this.#ofFragment(selection.name.value), 0, false);
      }
    }
    return cost;
  }

  /** A fragment that spreads itself is not counted: the validation refuses it. */
  #ofFragment(name: string): Cost | undefined {
    const known = this.#known.get(name);
    if (known !== undefined) return known;
    const fragment = this.#fragments.get(name);
    if (fragment === undefined) return undefined;
    this.#known.set(name, nothing());
    const cost = this.ofSelections(fragment.selectionSet);
    this.#known.set(name, cost);
    return cost;
  }
}

const INTROSPECTION: ReadonlySet<string> = new Set(['__schema', '__type']);

function addTo(cost: Cost, below: Cost | undefined, levels: number, introspection: boolean): void {
  const depth = below?.depth ?? 0;
  // What is deep below `__schema` is no more than what the standard query needs; deeper counts in full.
  cost.depth = Math.max(cost.depth, levels + (introspection && depth <= INTROSPECTION_DEPTH_MAX ? 0 : depth));
  cost.fields += below?.fields ?? 0;
  if (levels === 0) cost.roots += below?.roots ?? 0;
  cost.introspects ||= below?.introspects ?? false;
  cost.aliases += below?.aliases ?? 0;
  cost.directives += below?.directives ?? 0;
}
