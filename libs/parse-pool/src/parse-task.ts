/** What passes between the threads. */
import type { parsePipeline, ParseResult } from '@penstock/pipeline';

export type ParseOptions = NonNullable<Parameters<typeof parsePipeline>[1]>;

export interface ParseTask {
  readonly text: string;
  readonly options: ParseOptions;
}

export interface ParseAnswer {
  readonly result: ParseResult;
}
