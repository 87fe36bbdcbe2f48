/**
 * Counts what a definition will hold, before it is made: stages, dependencies, texts, and the nodes of expressions, which
 * inputs within inputs can multiply. Owns the names of all stages made so far.
 */
import type { Command, Expression, Template } from '../model/definition.ts';
import type { PlaceDefinition } from '../model/place.ts';
import type { PlaceDraft, PlaceKey } from './place.ts';
import { PIPELINE_LIMITS } from '../model/limits.ts';
import { quoted } from '../text/printable.ts';
import type { Problems } from '../text/problems.ts';
import { literal, NodeCounter } from '../expressions/substitute.ts';
import type { Span } from '../text/text-position.ts';

/** What cannot be had where the file is to run, by the key that asks for it. */
export type Lacking = ReadonlyMap<PlaceKey, { readonly message: string; readonly suggestion?: string | undefined }>;

/** The stage of the file that a problem is about. */
export interface Site {
  readonly span: Span;
  readonly path: string;
}

/** What an expression counts for in the size of a definition; one that inputs have made larger counts by its nodes. */
const EXPRESSION_SIZE = 50;
const NODE_SIZE = 40;
/** What a stage counts for beside its texts, and a text beside its characters. */
const STAGE_SIZE = 260;
const TEXT_SIZE = 3;

export class ExpansionBudget {
  readonly problems: Problems;
  /** What is expanded stands already: what was not counted at its door is not counted now. */
  readonly standing: boolean;
  readonly #lacking: Lacking;
  readonly #nodes = new NodeCounter();
  readonly #names = new Set<string>();
  readonly #labelSets = new Set<string>();
  #labelSetsSize = 0;
  #size = 0;
  #dependencies = 0;
  #isFull = false;

  constructor(problems: Problems, lacking: Lacking, standing = false) {
    this.problems = problems;
    this.#lacking = lacking;
    this.standing = standing;
  }

  /** A bound was reached, and noted: nothing more needs to be made. */
  get isFull(): boolean {
    return this.#isFull;
  }

  /** Counts stages with these names, each with `text` characters of scripts and variables. False: there are too many. */
  admit(names: readonly string[], after: readonly string[], text: number, site: Site): boolean {
    const dependencies = after.reduce((sum, name) => sum + name.length + TEXT_SIZE, 0);
    this.#size += names.length * (text + dependencies + STAGE_SIZE);
    this.#dependencies += names.length * after.length;
    for (const name of names) {
      this.#size += name.length;
      if (name.length > PIPELINE_LIMITS.expandedNameLengthMax)
        this.#note(
          site,
          `the name of an expansion is longer than ${PIPELINE_LIMITS.expandedNameLengthMax} characters: ${quoted(name)}`,
        );
      if (this.#names.has(name)) this.#note(site, `two stages would have the name ${quoted(name)}`);
      this.#names.add(name);
    }
    if (this.#size > PIPELINE_LIMITS.definitionTextMax)
      this.#fill(
        site,
        `all stages together, written out with their scripts, variables, names and dependencies, are more than ${PIPELINE_LIMITS.definitionTextMax / 1024 / 1024} MiB after expansion`,
      );
    else if (this.#names.size > PIPELINE_LIMITS.stagesMax)
      this.#fill(
        site,
        `more than ${PIPELINE_LIMITS.stagesMax.toLocaleString('en')} stages after the extensions are expanded`,
      );
    else if (this.#dependencies > PIPELINE_LIMITS.dependenciesMax)
      this.#fill(
        site,
        `the stages have more than ${PIPELINE_LIMITS.dependenciesMax.toLocaleString('en')} dependencies after the extensions are expanded`,
      );
    return !this.#isFull;
  }

  /** Counts the labels of a stage: each set of them is told to all runners. */
  admitLabels(labels: readonly string[], site: Site): void {
    const set = labels.join(',');
    if (set === '' || this.#labelSets.has(set) || this.#isFull) return;
    this.#labelSets.add(set);
    this.#labelSetsSize += set.length;
    if (set.length > PIPELINE_LIMITS.labelsTextMax)
      this.#note(site, `the labels of this stage have more than ${PIPELINE_LIMITS.labelsTextMax} characters together`);
    if (this.#labelSets.size > PIPELINE_LIMITS.labelSetsMax)
      this.#fill(site, `the stages have more than ${PIPELINE_LIMITS.labelSetsMax} different sets of labels`);
    else if (this.#labelSetsSize > PIPELINE_LIMITS.labelSetsTextMax)
      this.#fill(
        site,
        `the different sets of labels have more than ${PIPELINE_LIMITS.labelSetsTextMax / 1024} KiB together`,
      );
  }

  /** Notes what whoever is to run the stage cannot give it: at its key, or where the stage is, if an extension asks for it. */
  admitPlace(place: PlaceDefinition<Template> | undefined, own: PlaceDraft, site: Site): void {
    if (place === undefined) return;
    for (const [key, { message, suggestion }] of this.#lacking)
      if (place[key] !== undefined)
        this.problems.add(own.keys.get(key) ?? site.span, `${site.path}.${key}`, message, suggestion);
  }

  /** An expression that has grown beyond the bound is replaced by the empty text, and noted. */
  bounded(expression: Expression, site: Site): Expression {
    if (this.#nodes.of(expression) <= PIPELINE_LIMITS.expressionNodesMax) return expression;
    this.#note(
      site,
      `an expression of this stage has more than ${PIPELINE_LIMITS.expressionNodesMax.toLocaleString('en')} parts, the inputs of extensions written out`,
    );
    return literal('');
  }

  sizeOfExpression(expression: Expression): number {
    return Math.max(EXPRESSION_SIZE, NODE_SIZE * this.#nodes.of(expression));
  }

  sizeOfTemplate(template: Template): number {
    return template.reduce(
      (sum, part) => sum + (typeof part === 'string' ? part.length : this.sizeOfExpression(part.expression)),
      0,
    );
  }

  sizeOfCommands(commands: readonly Command[]): number {
    return commands.reduce(
      (sum, { script, bindings }) =>
        sum +
        script.length +
        Object.values(bindings).reduce((nodes, expression) => nodes + NODE_SIZE * this.#nodes.of(expression), 0),
      0,
    );
  }

  #note(site: Site, message: string): void {
    this.problems.add(site.span, site.path, message);
  }

  #fill(site: Site, message: string): void {
    this.#isFull = true;
    this.#note(site, message);
  }
}
