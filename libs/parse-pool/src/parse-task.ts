/** What passes between the threads. */
import type { ManifestResult, parsePipeline, ParseResult } from '@penstock/pipeline';

export type ParseOptions = NonNullable<Parameters<typeof parsePipeline>[1]>;

/** Without options: which extensions the file uses is all that is asked, or what it says as a manifest. */
export interface ParseTask {
  readonly text: string;
  readonly options: ParseOptions | undefined;
  readonly isManifest?: true | undefined;
}

export type ParseAnswer = ParseResult | readonly string[] | ManifestResult;

export interface ThreadAnswer {
  readonly answer: ParseAnswer;
  /** Of the definition, as `definitionBytes` counts them; absent where there is none. */
  readonly bytes?: number | undefined;
}

/** From a thread: its program is loaded, or what it has read. */
export type ThreadMessage = 'loaded' | ThreadAnswer;
