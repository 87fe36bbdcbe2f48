/**
 * Parsed files, remembered by their text: a process that checks a file at its door and then owns its run reads it once.
 * Remembering changes no answer, since the text alone decides it.
 */
import type { ParseResult, PipelineDefinition, StageDefinition } from '../model/definition.ts';
import { definitionBytes, knowDefinitionBytes } from './definition-bytes.ts';
import { parsePipeline, type ParseOptions } from './parse.ts';

const TEXTS_MAX = 256;
/** Bytes of all texts and definitions that are remembered, as `definitionBytes` counts them. */
const BYTES_MAX = 32 * 1024 * 1024;

interface Remembered {
  readonly result: ParseResult;
  readonly bytes: number;
}

/** Good files only, least recently used first: a bad one is not worth the place. */
const remembered = new Map<string, Remembered>();
let bytesHeld = 0;

/** As `parsePipeline`. A file that is good by itself is just as good, and the same, as the server's template. */
export function parseRemembered(text: string, options: ParseOptions = {}): ParseResult {
  const known = recall(text, options);
  if (known !== undefined) return known;
  const result = parsePipeline(text, options);
  if (result.ok && isPlain(options)) remember(text, result);
  return result;
}

/** What is remembered of a file; it becomes the most recently used. The same text means something else where a stage adds it. */
export function recall(text: string, { added }: ParseOptions = {}): ParseResult | undefined {
  if (added !== undefined) return undefined;
  const known = remembered.get(text);
  if (known === undefined) return undefined;
  remembered.delete(text);
  remembered.set(text, known);
  return known.result;
}

/**
 * Takes over what another thread or process has made of a file with `options`, and remembers it where they decide nothing. Records that
 * have come from there have prototypes, which a definition's have not: keys such as `constructor` are data. `bytes`: of the definition, as
 * `definitionBytes` has counted them there.
 */
export function adoptForeign(text: string, options: ParseOptions, result: ParseResult, bytes?: number): void {
  if (!result.ok) return;
  removePrototypes(result.definition);
  if (bytes !== undefined) knowDefinitionBytes(result.definition, bytes);
  if (isPlain(options)) remember(text, result);
}

function remember(text: string, result: ParseResult): void {
  if (!result.ok || remembered.has(text)) return;
  const bytes = text.length + definitionBytes(result.definition);
  if (bytes > BYTES_MAX / 8) return;
  while (remembered.size >= TEXTS_MAX || bytesHeld + bytes > BYTES_MAX) forgetOldest();
  remembered.set(text, { result, bytes });
  bytesHeld += bytes;
}

function forgetOldest(): void {
  const oldest = remembered.entries().next().value;
  if (oldest === undefined) return;
  remembered.delete(oldest[0]);
  bytesHeld -= oldest[1].bytes;
}

function removePrototypes({ stages, generation }: PipelineDefinition): void {
  if (generation !== undefined) Object.setPrototypeOf(generation.env, null);
  // The expansions of a matrix share their commands, which may be hundreds.
  const seen = new Set<StageDefinition['commands']>();
  for (const { env, commands, matrix, place } of stages) {
    for (const service of place?.services ?? []) Object.setPrototypeOf(service.env, null);
    Object.setPrototypeOf(env, null);
    if (matrix !== undefined) Object.setPrototypeOf(matrix.values, null);
    if (seen.has(commands)) continue;
    seen.add(commands);
    for (const { bindings } of commands) Object.setPrototypeOf(bindings, null);
  }
}

/** Nothing but the text decides. No extensions are as good as none given. */
function isPlain({ extensions = [], ...others }: ParseOptions): boolean {
  return extensions.length === 0 && Object.values(others).every((value) => value === undefined || value === false);
}
