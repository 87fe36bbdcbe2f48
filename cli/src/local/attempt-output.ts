/** The output of one attempt on its way to the reporter: whole lines, counted, and its end kept where it is asked for. */
import { LineSplitter, type OutputSink, type OutputStreamName } from '@penstock/executor';
import { STAGE_TEXT_BYTES_MAX, type StageText } from '@penstock/run';
import type { Reporter } from '../output/reporter.ts';
import { TailBuffer } from '../output/tail-buffer.ts';

export class AttemptOutput implements OutputSink {
  /** Of all whole lines so far. */
  bytes = 0;
  readonly #stage: string;
  readonly #reporter: Reporter;
  readonly #tail: TailBuffer | undefined;
  readonly #splitters = new Map<OutputStreamName, LineSplitter>();
  #room: void | Promise<void> = undefined;

  constructor(stage: string, reporter: Reporter, options: { readonly keepText: boolean }) {
    this.#stage = stage;
    this.#reporter = reporter;
    this.#tail = options.keepText ? new TailBuffer(STAGE_TEXT_BYTES_MAX) : undefined;
  }

  write(stream: OutputStreamName, bytes: Uint8Array): void | Promise<void> {
    this.#room = undefined;
    let splitter = this.#splitters.get(stream);
    if (splitter === undefined) {
      splitter = new LineSplitter((lines) => this.#take(stream, lines));
      this.#splitters.set(stream, splitter);
    }
    splitter.push(bytes);
    return this.#room;
  }

  /** A line of ours. */
  remark(text: string): void {
    void this.write('system', Buffer.from(`${text}\n`));
  }

  /** No more bytes come: what has no line end yet is shown. */
  end(): void | Promise<void> {
    this.#room = undefined;
    for (const splitter of this.#splitters.values()) splitter.end();
    return this.#room;
  }

  text(): StageText {
    return this.#tail?.text() ?? { text: '', truncated: false };
  }

  #take(stream: OutputStreamName, lines: Uint8Array): void {
    const bytes = Buffer.from(lines.buffer, lines.byteOffset, lines.length);
    this.bytes += bytes.length;
    this.#tail?.push(bytes);
    this.#room = this.#reporter.lines(this.#stage, stream, bytes, Date.now());
  }
}
