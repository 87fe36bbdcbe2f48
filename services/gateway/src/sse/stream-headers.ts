/** What every stream of server-sent events is answered with. */
export const STREAM_HEADERS = {
  'Content-Type': 'text/event-stream',
  'Cache-Control': 'no-cache, no-store, no-transform',
  // Proxies would otherwise collect the stream until it ends.
  'X-Accel-Buffering': 'no',
};
