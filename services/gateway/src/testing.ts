/** The log streams of the gateway, and its reading of kept files, by themselves, for the simulation (`@penstock/gateway/testing`). Production starts the whole of it through `index.ts`. */
export { Cursor } from './event-stream/cursor.ts';
export type { StreamSink } from './sse/client.ts';
export type { RunSource } from './sse/run-source.ts';
export { Streams } from './sse/streams.ts';
export { keptIn, KeptFiles } from './artifacts/kept-files.ts';
