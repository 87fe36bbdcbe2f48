/** The one pool of a process: services that share a process share its threads too. */
import type { ManifestResult, ParseResult } from '@penstock/pipeline';
import { ParsePool } from './parse-pool.ts';
import type { ParseOptions } from './parse-task.ts';

const shared = new ParsePool();

/** Reads a file of the caller `options.key`, with the threads of this process. @throws Unavailable */
export function parsePipelineOffThread(
  text: string,
  { key, ...options }: ParseOptions & { readonly key: string },
  deadlineMs: number,
): Promise<ParseResult> {
  return shared.parse(text, options, key, deadlineMs);
}

/** As `usesOf`, with the threads of this process. @throws Unavailable */
export function usesOffThread(text: string, key: string, deadlineMs: number): Promise<readonly string[]> {
  return shared.uses(text, key, deadlineMs);
}

/** As `parseManifest`, with the threads of this process. @throws Unavailable */
export function manifestOffThread(text: string, key: string, deadlineMs: number): Promise<ManifestResult> {
  return shared.manifest(text, key, deadlineMs);
}

/** Whether a file is read on the calling thread, by all pools: it takes a few milliseconds. */
export function isReadAtOnce(text: string, options: ParseOptions): boolean {
  return shared.isReadAtOnce(text, options);
}

/** A service that reads files starts its thread before it says that it is ready: the first file has a deadline too. */
export function warmParseThread(): Promise<void> {
  return shared.warm();
}
