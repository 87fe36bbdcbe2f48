/** Texts that stages add to their runs (P29), read where they hold up nobody. */
import { Unavailable } from '@penstock/errors';
import { isReadAtOnce, parsePipelineOffThread } from '@penstock/parse-pool';
import { parsePipeline, type ParseResult } from '@penstock/pipeline';
import type { AddedTextOptions } from '@penstock/run';

/** Throws Unavailable where it cannot be read in time. `key`: whose turn it is. */
export type ReadAddedText = (text: string, options: AddedTextOptions, key: string) => Promise<ParseResult>;

/** A runner asks again for as long as it is not answered. */
const READ_MS_MAX = 60_000;

/** On another thread, where that takes a while. */
export const readAddedText: ReadAddedText = async (text, options, key) =>
  isReadAtOnce(text, options)
    ? parsePipeline(text, options)
    : await parsePipelineOffThread(text, { ...options, key }, READ_MS_MAX);

/** Of a run that exists: it is read whatever that takes, here in the end. */
export async function readAddedAgain(
  read: ReadAddedText,
  text: string,
  options: AddedTextOptions,
  key: string,
): Promise<ParseResult> {
  try {
    return await read(text, options, key);
  } catch (error) {
    if (!(error instanceof Unavailable)) throw error;
    return parsePipeline(text, options);
  }
}
