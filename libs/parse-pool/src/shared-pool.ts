/** The one pool of a process: services that share a process share its threads too. */
import type { ParseResult } from '@penstock/pipeline';
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
