/** Parsed definitions, shared by all runs of one text: a three-stage file costs more to parse than to run. */
import { createHash } from 'node:crypto';
import { diagnosticLine, parseRemembered, type PipelineDefinition } from '@penstock/pipeline';

const DEFINITIONS_MAX = 2_000;
/** Bounds the texts behind the cached definitions. */
const DEFINITION_BYTES_MAX = 64 * 1024 * 1024;

export class BadPipeline extends Error {
  override readonly name = 'BadPipeline';
}

/** Where an owner gets the definition of a text; throws BadPipeline for a text that is none. */
export interface DefinitionSource {
  of(yaml: string): PipelineDefinition;
}

export class Definitions implements DefinitionSource {
  /** By hash, least recently used first. */
  readonly #cache = new Map<string, { readonly definition: PipelineDefinition; readonly bytes: number }>();
  #bytes = 0;

  /** Throws BadPipeline for a text that is none; senders check first, so this is a sender's mistake. */
  of(yaml: string): PipelineDefinition {
    const hash = createHash('sha256').update(yaml).digest('base64');
    const known = this.#cache.get(hash);
    if (known !== undefined) {
      this.#cache.delete(hash);
      this.#cache.set(hash, known);
      return known.definition;
    }
    const parsed = parseRemembered(yaml, { template: true });
    if (!parsed.ok) throw new BadPipeline(parsed.diagnostics.map(diagnosticLine).join('\n'));
    this.#cache.set(hash, { definition: parsed.definition, bytes: yaml.length });
    this.#bytes += yaml.length;
    while (this.#cache.size > DEFINITIONS_MAX || this.#bytes > DEFINITION_BYTES_MAX) {
      const [oldest] = this.#cache;
      if (oldest === undefined || oldest[0] === hash) break;
      this.#cache.delete(oldest[0]);
      this.#bytes -= oldest[1].bytes;
    }
    return parsed.definition;
  }
}
