/** A client of the log stream, as an EventSource is one, whose connection the test can cut and take up again. */

export interface StreamEvent {
  readonly id: string;
  readonly event: string;
  readonly data: Record<string, unknown> & { readonly type: string };
}

export interface WatchOptions {
  readonly lastEventId?: string | undefined;
  readonly signal?: AbortSignal | undefined;
  readonly onEvent?: ((event: StreamEvent) => void) | undefined;
}

/** Reads until the server ends the stream, the signal aborts or the connection breaks. */
export async function readStream(
  url: string,
  token: string,
  options: WatchOptions = {},
): Promise<{ readonly status: number; readonly events: StreamEvent[]; readonly ended: 'server' | 'cut' }> {
  const events: StreamEvent[] = [];
  try {
    const response = await fetch(url, {
      headers: {
        authorization: `Bearer ${token}`,
        ...(options.lastEventId === undefined ? {} : { 'last-event-id': options.lastEventId }),
      },
      ...(options.signal === undefined ? {} : { signal: options.signal }),
    });
    if (response.status !== 200 || response.body === null) return { status: response.status, events, ended: 'server' };
    try {
      for await (const event of messagesOf(response.body)) {
        events.push(event);
        options.onEvent?.(event);
      }
      return { status: 200, events, ended: 'server' };
    } catch {
      return { status: 200, events, ended: 'cut' };
    }
  } catch {
    return { status: 0, events, ended: 'cut' };
  }
}

async function* messagesOf(body: ReadableStream<Uint8Array>): AsyncGenerator<StreamEvent> {
  const decoder = new TextDecoder();
  let buffered = '';
  for await (const bytes of body) {
    buffered += decoder.decode(bytes, { stream: true });
    for (let end = buffered.indexOf('\n\n'); end >= 0; end = buffered.indexOf('\n\n')) {
      const message = parseMessage(buffered.slice(0, end));
      buffered = buffered.slice(end + 2);
      if (message !== undefined) yield message;
    }
  }
}

function parseMessage(text: string): StreamEvent | undefined {
  let id = '';
  let event = '';
  let data = '';
  for (const line of text.split('\n')) {
    if (line.startsWith('id: ')) id = line.slice(4);
    else if (line.startsWith('event: ')) event = line.slice(7);
    else if (line.startsWith('data: ')) data += line.slice(6);
  }
  return event === '' ? undefined : { id, event, data: JSON.parse(data) as StreamEvent['data'] };
}
