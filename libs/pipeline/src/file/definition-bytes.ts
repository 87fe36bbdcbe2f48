/**
 * How large a definition is when it is written out as JSON, without writing it: what a process that keeps it, or sends it,
 * admits it by. Parts that stages share are looked at once and counted for each, as they are written.
 */
import type {
  Command,
  Expression,
  Generation,
  PipelineDefinition,
  StageDefinition,
  Template,
} from '../model/definition.ts';
import type { ImageDefinition, PlaceDefinition } from '../model/place.ts';
import { utf8Length } from '../text/text-position.ts';

/** Keys, braces and the fields of a fixed size of a stage; of an expression's node; quotes and a comma. */
const STAGE_BYTES = 260;
const NODE_BYTES = 40;
const TEXT_BYTES = 3;
const NO_TEXT: Template = [];

/** Measuring a large one takes a tenth of a second, and whoever takes it over asks. */
const known = new WeakMap<PipelineDefinition, number>();

/** An estimate in bytes, within a factor of two of the length of the JSON for texts without many escapes. */
export function definitionBytes(definition: PipelineDefinition): number {
  const bytes = known.get(definition) ?? measured(definition);
  known.set(definition, bytes);
  return bytes;
}

/** Of one that comes from another thread, as that has measured it. */
export function knowDefinitionBytes(definition: PipelineDefinition, bytes: number): void {
  known.set(definition, bytes);
}

function measured(definition: PipelineDefinition): number {
  const measure = new Measure();
  const { name, description, stages, concurrency, schedule, inputs = [], generation } = definition;
  const own = textBytes(name) + textBytes(description ?? '') + textBytes(JSON.stringify(definition.on ?? null));
  const group = concurrency === undefined ? 0 : measure.template(concurrency.group) + NODE_BYTES;
  const takes = textBytes(JSON.stringify(inputs)) + textBytes(JSON.stringify(schedule));
  const adds = generation === undefined ? 0 : measure.generation(generation);
  return stages.reduce((sum, stage) => sum + measure.stage(stage), own + takes + adds + group);
}

function textBytes(text: string): number {
  return utf8Length(text, Number.MAX_SAFE_INTEGER) + TEXT_BYTES;
}

class Measure {
  readonly #known = new WeakMap<object, number>();

  stage(stage: StageDefinition): number {
    return (
      STAGE_BYTES +
      textBytes(stage.name) +
      this.list(stage.after) +
      this.list(stage.runsOn) +
      this.list(stage.outputs) +
      (stage.when === undefined ? 0 : this.#expression(stage.when)) +
      this.#once(stage.commands, () => stage.commands.reduce((sum, command) => sum + this.#command(command), 0)) +
      this.#record(stage.env, (value) => this.template(value)) +
      (stage.secrets === undefined ? 0 : this.#secrets(stage.secrets)) +
      (stage.idTokens === undefined
        ? 0
        : stage.idTokens.reduce((sum, { audience, variable }) => sum + textBytes(audience) + textBytes(variable), 2)) +
      (stage.place === undefined ? 0 : this.#place(stage.place)) +
      (stage.artifacts === undefined
        ? 0
        : NODE_BYTES + this.list(stage.artifacts.paths) + this.list(stage.artifacts.from ?? [])) +
      (stage.reports === undefined ? 0 : NODE_BYTES + this.list(stage.reports.junit)) +
      (stage.quarantine === undefined ? 0 : 2 * NODE_BYTES + textBytes(stage.quarantine.reason ?? '')) +
      (stage.caches === undefined ? 0 : this.#caches(stage.caches)) +
      (stage.workdir === undefined ? 0 : this.template(stage.workdir)) +
      (stage.matrix === undefined ? 0 : textBytes(stage.matrix.of) + this.#record(stage.matrix.values, textBytes)) +
      (stage.approval === undefined
        ? 0
        : 2 * NODE_BYTES +
          this.list(stage.approval.approvers ?? []) +
          this.template(stage.approval.message ?? NO_TEXT)) +
      (stage.generates === undefined
        ? 0
        : NODE_BYTES + this.list(stage.generates.secrets) + this.list(stage.generates.audiences)) +
      (stage.extension === undefined ? 0 : 100 + stage.extension.id.length)
    );
  }

  generation({ env, extensions }: Generation): number {
    return extensions.reduce(
      (sum, { uses, manifest }) => sum + 4 * NODE_BYTES + textBytes(uses) + textBytes(manifest),
      this.#record(env, (value) => this.template(value)),
    );
  }

  list(texts: readonly string[]): number {
    return this.#once(texts, () => texts.reduce((sum, text) => sum + textBytes(text), 2));
  }

  template(template: Template): number {
    return this.#once(template, () =>
      template.reduce(
        (sum, part) => sum + (typeof part === 'string' ? textBytes(part) : 16 + this.#expression(part.expression)),
        2,
      ),
    );
  }

  #place(place: PlaceDefinition<Template>): number {
    const services = place.services ?? [];
    return this.#once(place, () =>
      services.reduce(
        (sum, { image, env, ready = '' }) =>
          sum + NODE_BYTES + this.#image(image) + textBytes(ready) + this.#record(env, (value) => this.template(value)),
        NODE_BYTES + (place.image === undefined ? 0 : this.#image(place.image)),
      ),
    );
  }

  #caches(caches: NonNullable<StageDefinition['caches']>): number {
    return this.#once(caches, () =>
      caches.reduce(
        (sum, { key, paths, restore }) =>
          sum +
          NODE_BYTES +
          this.template(key) +
          this.list(paths) +
          restore.reduce((texts, text) => texts + this.template(text), 2),
        2,
      ),
    );
  }

  #secrets(secrets: NonNullable<StageDefinition['secrets']>): number {
    return this.#once(secrets, () =>
      secrets.reduce((sum, { variable, name }) => sum + NODE_BYTES + textBytes(variable) + textBytes(name), 2),
    );
  }

  #image({ name, entrypoint = [], user = '' }: ImageDefinition): number {
    return NODE_BYTES + textBytes(name) + textBytes(user) + this.list(entrypoint);
  }

  #command({ script, bindings }: Command): number {
    return NODE_BYTES + textBytes(script) + this.#record(bindings, (value) => this.#expression(value));
  }

  #record<Value>(record: Readonly<Record<string, Value>>, sizeOf: (value: Value) => number): number {
    return this.#once(record, () =>
      Object.entries(record).reduce((sum, [key, value]) => sum + textBytes(key) + sizeOf(value), 2),
    );
  }

  #expression(expression: Expression): number {
    return this.#once(expression, () => NODE_BYTES + this.#inside(expression));
  }

  #inside(expression: Expression): number {
    switch (expression.kind) {
      case 'literal':
        return textBytes(String(expression.value));
      case 'path':
        return this.list(expression.path);
      case 'text':
        return this.template(expression.parts);
      case 'not':
        return this.#expression(expression.operand);
      case 'binary':
        return this.#expression(expression.left) + this.#expression(expression.right);
      case 'call':
        return expression.arguments.reduce((sum, argument) => sum + this.#expression(argument), 0);
    }
  }

  #once(part: object, measure: () => number): number {
    const known = this.#known.get(part);
    if (known !== undefined) return known;
    const bytes = measure();
    this.#known.set(part, bytes);
    return bytes;
  }
}
