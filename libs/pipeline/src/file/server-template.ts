/**
 * The server's own pipeline file, which stands in place of a repository's. A pipeline is known by its name before anything has a value, so
 * `${{ webhook.* }}` in 'pipeline.name' and 'pipeline.description' is put in as text when a push is read, and the run has that text
 * as its file; everywhere else it stays an expression, whose value reaches a stage as data. Pure.
 *
 *  SERVERTEMPLATE-1 A value is text within its scalar: none can add to the file. Of what a push says only what is harmless stands there, for
 *    it is shown and compared everywhere (`UNSAFE`). Even so it could name a program or an image: who takes a template with such a name
 *    refuses it where an expression hands the name on (`isFixed` of `command.ts` lets it go anywhere). Nor can a push break the rules of a name, and so have its own run refused: what is too long is cut.
 *  SERVERTEMPLATE-2 What stands in other lines keeps its line.
 */
import { PIPELINE_LIMITS } from '../model/limits.ts';
import { Problems } from '../text/problems.ts';
import { screenText } from '../yaml/yaml-screen.ts';
import { readYaml, type MapNode, type ScalarNode, type YamlNode } from '../yaml/yaml-tree.ts';

export interface TemplateValues {
  readonly repository: string;
  readonly ref: string;
  readonly commit: string;
  readonly provider: string;
}

/** What is put in as text: a value by its name, and nothing that has to be computed. */
const VALUE = /\$\{\{\s*webhook\.(repository|ref|commit|provider)\s*\}\}/gu;

/** Neither a character that a shell or a program might act on, nor an option, a path from the root or one upwards. */
const UNSAFE = /[^\p{L}\p{N}._/+-]|^[^\p{L}\p{N}]|(?<=\.)\./gu;

interface Place extends ScalarNode {
  readonly key: 'name' | 'description';
  readonly lengthMax: number;
}

export class ServerTemplate {
  readonly text: string;
  #places: readonly Place[] | undefined;

  constructor(text: string) {
    this.text = text.startsWith('\uFEFF') ? text.slice(1) : text;
  }

  /** Whether a push has a say in the pipeline's name. */
  get isNamedByPush(): boolean {
    this.#places ??= placesIn(this.text);
    return this.#places.some(({ key }) => key === 'name');
  }

  /** The file for a push. What is wrong with it is left to who reads it. */
  filled(values: TemplateValues): string {
    this.#places ??= placesIn(this.text);
    let filled = '';
    let from = 0;
    for (const { start, end, text, lengthMax } of this.#places) {
      const value = text.replace(VALUE, (_, name: keyof TemplateValues) => values[name].replace(UNSAFE, '_'));
      const lines = this.text.slice(start, end).split('\n').length - 1;
      // JSON is YAML, in a block and between brackets.
      filled += this.text.slice(from, start) + JSON.stringify(cutTo(value, lengthMax)) + '\n'.repeat(lines);
      from = end;
    }
    return filled + this.text.slice(from);
  }
}

/** The scalars to fill, in the order of the text. */
function placesIn(text: string): Place[] {
  const problems = new Problems();
  const root = screenText(text, problems) ? readYaml(text, problems) : undefined;
  const pipeline = valueIn(root, 'pipeline');
  if (pipeline?.kind !== 'map') return [];
  const places = [
    placeOf('name', pipeline, PIPELINE_LIMITS.pipelineNameLengthMax),
    placeOf('description', pipeline, PIPELINE_LIMITS.descriptionLengthMax),
  ];
  return places.filter((place) => place !== undefined).sort((one, other) => one.start - other.start);
}

/** An alias stands for a text of elsewhere, where its expressions may be expressions: it is not filled. */
function placeOf(key: Place['key'], pipeline: MapNode, lengthMax: number): Place | undefined {
  const node = valueIn(pipeline, key);
  if (node?.kind !== 'scalar' || node.text.search(VALUE) === -1) return undefined;
  // An alias refers to what stands before it.
  const [own, ...more] = pipeline.entries.filter(({ value }) => value === node);
  if (own === undefined || more.length > 0 || node.start < own.keySpan.end) return undefined;
  return { ...node, key, lengthMax };
}

function cutTo(text: string, lengthMax: number): string {
  if (text.length <= lengthMax) return text;
  const cut = text.slice(0, lengthMax);
  return (cut.isWellFormed() ? cut : cut.slice(0, -1)).trimEnd();
}

function valueIn(node: YamlNode | undefined, key: string): YamlNode | undefined {
  return node?.kind === 'map' ? node.entries.find((entry) => entry.key === key)?.value : undefined;
}
