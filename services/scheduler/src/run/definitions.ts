/**
 * Parsed definitions, shared by all runs of one text: a three-stage file costs more to parse than to run, and what a large one
 * means takes more memory than many runs of it.
 *
 *  DEFINITIONS-1 While anything in memory has the definition of a text, whoever asks for that text gets the same one, however
 *     many others have been read since.
 */
import { hash } from 'node:crypto';
import {
  definitionBytes,
  diagnosticLine,
  parseRemembered,
  type ParseResult,
  type PipelineDefinition,
  type ResolvedExtension,
} from '@penstock/pipeline';
import type { RunCreated } from '@penstock/run';
import { TaggedError } from '@penstock/errors';

const DEFINITIONS_MAX = 2_000;
/** Bounds the texts and what they expand to: 9.5 KB may mean 0.8 MiB. */
const DEFINITION_BYTES_MAX = 64 * 1024 * 1024;

export class BadPipeline extends TaggedError {
  readonly tag = 'BadPipeline';
}

/** A text, what its `uses` stand for, and what they mean together. Runs of the same text share the first two as well. */
export interface DefinedPipeline {
  readonly definition: PipelineDefinition;
  readonly yaml: string;
  readonly extensions?: readonly ResolvedExtension[] | undefined;
}

/** Where an owner gets the definition of a text; throws BadPipeline for a text that is none. */
export interface DefinitionSource {
  find(yaml: string, extensions?: readonly ResolvedExtension[]): DefinedPipeline;
}

/** Of a created run, with its texts as they are shared. One without a text has no stages: it ended as it began. */
export function definedRun(
  created: RunCreated,
  source: DefinitionSource,
): { readonly definition: PipelineDefinition; readonly created: RunCreated } {
  if (created.yaml === '') return { definition: emptyPipeline(created.pipelineName), created };
  const { definition, yaml, extensions } = source.find(created.yaml, created.extensions);
  return { definition, created: { ...created, yaml, ...(extensions === undefined ? {} : { extensions }) } };
}

export function emptyPipeline(name: string): PipelineDefinition {
  return { name, schedule: [], stages: [] };
}

interface Entry extends DefinedPipeline {
  /** UTF-16 units of the texts, and about the bytes of the definition as JSON. */
  readonly length: number;
}

export class Definitions implements DefinitionSource {
  /** By hash, least recently used first. */
  readonly #cache = new Map<string, Entry>();
  #length = 0;
  /** Those that live on in runs, though others have taken their places above. */
  readonly #living = new Map<string, WeakRef<PipelineDefinition>>();
  readonly #entryOf = new WeakMap<PipelineDefinition, Entry>();
  readonly #gone = new FinalizationRegistry<string>((hash) => {
    if (this.#living.get(hash)?.deref() === undefined) this.#living.delete(hash);
  });

  /** Throws BadPipeline for a text that is none; senders check first, so this is a sender's mistake. */
  find(yaml: string, extensions?: readonly ResolvedExtension[]): DefinedPipeline {
    const name = hashOf(yaml, extensions);
    return this.#recall(name) ?? this.#read(name, yaml, extensions);
  }

  /** What is at hand, or may be read now. Throws BadPipeline. */
  findAtOnce(
    yaml: string,
    extensions: readonly ResolvedExtension[] | undefined,
    mayRead: () => boolean,
  ): DefinedPipeline | undefined {
    const name = hashOf(yaml, extensions);
    return this.#recall(name) ?? (mayRead() ? this.#read(name, yaml, extensions) : undefined);
  }

  /** Keeps what was read of a text with `readOptions`; throws BadPipeline where it is none. */
  keep(yaml: string, extensions: readonly ResolvedExtension[] | undefined, parsed: ParseResult): DefinedPipeline {
    const name = hashOf(yaml, extensions);
    // Two that were read at the same time are one for their runs.
    return this.#recall(name) ?? this.#keep(name, yaml, extensions, parsed);
  }

  #recall(name: string): DefinedPipeline | undefined {
    const known = this.#cache.get(name);
    if (known !== undefined) {
      this.#cache.delete(name);
      this.#cache.set(name, known);
      return known;
    }
    const living = this.#living.get(name)?.deref();
    const entry = living && this.#entryOf.get(living);
    if (entry !== undefined) this.#remember(name, entry);
    return entry;
  }

  #read(name: string, yaml: string, extensions: readonly ResolvedExtension[] | undefined): DefinedPipeline {
    return this.#keep(name, yaml, extensions, parseRemembered(yaml, readOptions(extensions)));
  }

  #keep(
    name: string,
    yaml: string,
    extensions: readonly ResolvedExtension[] | undefined,
    parsed: ParseResult,
  ): DefinedPipeline {
    if (!parsed.ok) throw new BadPipeline(parsed.diagnostics.map(diagnosticLine).join('\n'));
    const texts = yaml.length + (extensions ?? []).reduce((sum, { manifest }) => sum + manifest.length, 0);
    const length = texts + definitionBytes(parsed.definition);
    const entry: Entry = { definition: parsed.definition, yaml, extensions, length };
    this.#living.set(name, new WeakRef(parsed.definition));
    this.#entryOf.set(parsed.definition, entry);
    this.#gone.register(parsed.definition, name);
    this.#remember(name, entry);
    return entry;
  }

  #remember(hash: string, entry: Entry): void {
    this.#cache.set(hash, entry);
    this.#length += entry.length;
    while (this.#cache.size > DEFINITIONS_MAX || this.#length > DEFINITION_BYTES_MAX) {
      const [oldest] = this.#cache;
      if (oldest === undefined || oldest[0] === hash) break;
      this.#cache.delete(oldest[0]);
      this.#length -= oldest[1].length;
    }
  }
}

/** How the engine reads a text: what was good at its door, whether sent or the server's template, and at the time. */
export function readOptions(extensions: readonly ResolvedExtension[] | undefined): {
  readonly template: true;
  readonly standing: true;
  readonly extensions?: readonly ResolvedExtension[];
} {
  return { template: true, standing: true, ...(extensions === undefined ? {} : { extensions }) };
}

function hashOf(yaml: string, extensions: readonly ResolvedExtension[] | undefined): string {
  // No text holds NUL, so no text looks like another with its extensions.
  return hash('sha256', extensions === undefined ? yaml : `${yaml}\0${JSON.stringify(extensions)}`, 'base64');
}
