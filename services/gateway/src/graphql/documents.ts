/**
 * Query texts, checked before Mercurius sees them: parsed with a bound on tokens, and bounded in depth, aliases,
 * directives, fields and cost, with fragments counted as often as they are spread. Validation and execution cost more
 * than linear time in these, so they come first. Texts that passed are remembered.
 */
import type { DocumentNode, FragmentDefinitionNode, GraphQLError as SyntaxProblem, SelectionSetNode } from 'graphql';
import { GraphQLError, Kind, OperationTypeNode, parse } from './library.ts';
import { fieldCost, readsHistory, type Variables } from './list-cost.ts';
import { readsOnlyRuns } from './run-fields.ts';

/** The standard introspection query has about 400; a page of hand-written GraphQL about 300. A pipeline file is one. */
export const TOKENS_MAX = 1_000;
/** The deepest useful query of this schema has five levels. */
const DEPTH_MAX = 8;
/** Below `__schema` and `__type`: the standard introspection query reaches 13. */
const INTROSPECTION_DEPTH_MAX = 20;
const ALIASES_MAX = 15;
const DIRECTIVES_MAX = 20;
/** After all fragments are spread; a mutation counts as more. */
const FIELDS_MAX = 1_000;
/**
 * Each field costs one, a list as many times what is asked of each of its elements as it may have (`list-cost.ts`). The fullest
 * page of 100 runs costs 17,000.
 */
const COST_MAX = 30_000;
/** A mutation's own field is a durable write, and one request may hold several. */
const MUTATION_COST = 100;

/** How many texts are remembered as good, and how many Mercurius keeps parsed and compiled. */
export const REMEMBERED_MAX = 512;
/** Longer texts, with a pipeline file written into them, are all different: remembering them would only cost memory. */
export const REMEMBERED_LENGTH_MAX = 8 * 1024;

export type DocumentProblem =
  | { readonly kind: 'syntax'; readonly error: SyntaxProblem }
  | { readonly kind: 'limit'; readonly message: string }
  | { readonly kind: 'hidden schema'; readonly message: string };

/** Below it an operation is as light as most are; of those above few are executed at a time. */
export const COST_SMALL = 1_000;

interface DocumentCost {
  readonly kind: 'good';
  readonly cost: number;
  /** Whether its answer follows from the caller's rights and the runs that these show. */
  readonly readsRuns: boolean;
}

interface GoodDocument {
  /** Null: light with any variables. */
  readonly document: DocumentNode | null;
  readonly readsRuns: boolean;
}

export class Documents {
  readonly #good = new Map<string, GoodDocument>();
  readonly #introspection: boolean;

  /** `introspection`: whether documents may ask for the schema. */
  constructor(introspection: boolean) {
    this.#introspection = introspection;
  }

  /** What is wrong, or the document's cost; whether it fits the schema is for the validation to say. */
  check(source: string, variables: Readonly<Record<string, unknown>> = {}): DocumentProblem | DocumentCost {
    const known = this.#good.get(source);
    if (known?.document === null) return { kind: 'good', cost: COST_SMALL, readsRuns: known.readsRuns };
    let document: DocumentNode;
    try {
      document = known?.document ?? parse(source, { maxTokens: TOKENS_MAX, noLocation: true });
    } catch (error) {
      if (error instanceof GraphQLError) return { kind: 'syntax', error };
      throw error;
    }
    const { message, cost, introspects } = measure(document, variables);
    if (message !== null) return { kind: 'limit', message };
    if (introspects && !this.#introspection)
      return { kind: 'hidden schema', message: 'Introspection is turned off on this server.' };
    const readsRuns = known?.readsRuns ?? readsOnlyRuns(document);
    if (known === undefined && source.length <= REMEMBERED_LENGTH_MAX) this.#remember(source, document, readsRuns);
    return { kind: 'good', cost, readsRuns };
  }

  #remember(source: string, document: DocumentNode, readsRuns: boolean): void {
    if (this.#good.size >= REMEMBERED_MAX) this.#good.delete(this.#good.keys().next().value ?? '');
    const worst = measure(document, null);
    const isLight = worst.message === null && worst.cost <= COST_SMALL;
    this.#good.set(source, { document: isLight ? null : document, readsRuns });
  }
}

interface Cost {
  depth: number;
  fields: number;
  /** The fields, those of lists many times. */
  cost: number;
  /** How many of the fields are at the top. */
  roots: number;
  aliases: number;
  directives: number;
  introspects: boolean;
  /** Whether events of whole runs are read for it: never light, whatever is asked of them. */
  history: boolean;
}

const nothing = (): Cost => ({
  depth: 0,
  fields: 0,
  cost: 0,
  roots: 0,
  aliases: 0,
  directives: 0,
  introspects: false,
  history: false,
});

/** `message` is null where every limit is kept. */
function measure(
  document: DocumentNode,
  variables: Variables,
): { readonly message: string | null; readonly cost: number; readonly introspects: boolean } {
  const { total, weight } = totalOf(document, variables);
  const cost = total.history ? Math.max(total.cost, COST_SMALL + 1) : total.cost;
  return { message: limitProblem(total, weight), cost, introspects: total.introspects };
}

function totalOf(document: DocumentNode, variables: Variables): { readonly total: Cost; readonly weight: number } {
  const fragments = new Map<string, FragmentDefinitionNode>();
  for (const definition of document.definitions) {
    if (definition.kind === Kind.FRAGMENT_DEFINITION) fragments.set(definition.name.value, definition);
  }
  const costs = new FragmentCosts(fragments, variables);
  const total = nothing();
  let weight = 0;
  for (const definition of document.definitions) {
    if (definition.kind === Kind.OPERATION_DEFINITION) {
      const cost = costs.ofSelections(definition.selectionSet);
      total.depth = Math.max(total.depth, cost.depth);
      total.fields += cost.fields;
      total.cost += cost.cost;
      total.aliases += cost.aliases;
      total.directives += cost.directives + (definition.directives?.length ?? 0);
      total.introspects ||= cost.introspects;
      total.history ||= cost.history;
      if (definition.operation === OperationTypeNode.MUTATION) weight += cost.roots * MUTATION_COST;
    } else if (definition.kind === Kind.FRAGMENT_DEFINITION) {
      total.directives += definition.directives?.length ?? 0;
    }
  }
  return { total, weight };
}

function limitProblem(total: Cost, weight: number): string | null {
  if (total.depth > DEPTH_MAX) return `The query is too deep: at most ${DEPTH_MAX} levels.`;
  if (total.fields + weight > FIELDS_MAX) {
    return `The query has too many fields: at most ${FIELDS_MAX}, fragments counted where they are spread, and ${MUTATION_COST} more for each mutation.`;
  }
  if (total.aliases > ALIASES_MAX) return `The query has too many aliases: at most ${ALIASES_MAX}.`;
  if (total.directives > DIRECTIVES_MAX) return `The query has too many directives: at most ${DIRECTIVES_MAX}.`;
  if (total.cost > COST_MAX) {
    return `The query costs ${total.cost}, and at most ${COST_MAX} is allowed: 1 for each field, in a list as many times as its 'limit' or 'first' says. Ask for fewer at a time.`;
  }
  return null;
}

/** Each fragment is counted once, however often it is spread: two to the power of 25 spreads are one multiplication each. */
class FragmentCosts {
  readonly #fragments: ReadonlyMap<string, FragmentDefinitionNode>;
  readonly #known = new Map<string, Cost>();
  readonly #variables: Variables;

  constructor(fragments: ReadonlyMap<string, FragmentDefinitionNode>, variables: Variables) {
    this.#fragments = fragments;
    this.#variables = variables;
  }

  ofSelections(set: SelectionSetNode): Cost {
    const cost = nothing();
    for (const selection of set.selections) {
      cost.directives += selection.directives?.length ?? 0;
      if (selection.kind === Kind.FIELD) {
        cost.fields += 1;
        cost.roots += 1;
        cost.introspects ||= INTROSPECTION.has(selection.name.value);
        cost.history ||= readsHistory(selection);
        if (selection.alias !== undefined) cost.aliases += 1;
        const below = selection.selectionSet === undefined ? undefined : this.ofSelections(selection.selectionSet);
        addTo(cost, below, 1, INTROSPECTION.has(selection.name.value));
        cost.cost += fieldCost(selection, below?.cost ?? 0, this.#variables);
      } else if (selection.kind === Kind.INLINE_FRAGMENT) {
        addSpread(cost, this.ofSelections(selection.selectionSet));
      } else {
        addSpread(cost, this.#ofFragment(selection.name.value));
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

function addSpread(cost: Cost, spread: Cost | undefined): void {
  addTo(cost, spread, 0, false);
  cost.cost += spread?.cost ?? 0;
}

function addTo(cost: Cost, below: Cost | undefined, levels: number, introspection: boolean): void {
  const depth = below?.depth ?? 0;
  // What is deep below `__schema` is no more than what the standard query needs; deeper counts in full.
  cost.depth = Math.max(cost.depth, levels + (introspection && depth <= INTROSPECTION_DEPTH_MAX ? 0 : depth));
  cost.fields += below?.fields ?? 0;
  if (levels === 0) cost.roots += below?.roots ?? 0;
  cost.introspects ||= below?.introspects ?? false;
  cost.history ||= below?.history ?? false;
  cost.aliases += below?.aliases ?? 0;
  cost.directives += below?.directives ?? 0;
}
