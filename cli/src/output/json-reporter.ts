/**
 * Shows a run as JSON for a program: a line that names the run, then one event a line, with the fields that it has in a
 * server's log stream (docs/events.md). There a stage's status is spelt in another way than a run's; here every status is
 * spelt as in the API: `SUCCESS`.
 */
import type { LogStreamName, PublicEvent, PublicRunEvent } from '@penstock/run/public-events';
import { isoTimer } from './iso-time.ts';
import type { OutputWriter } from './output-writer.ts';
import type { Reporter } from './reporter.ts';
import { StageTally } from './stage-tally.ts';

const NEWLINE = 0x0a;
const CARRIAGE_RETURN = 0x0d;

export class JsonReporter implements Reporter {
  readonly tally: StageTally;
  readonly #out: OutputWriter;
  readonly #isoTime = isoTimer();

  /** `id` and whatever else tells which run it is come first, before anything has happened in it. */
  constructor(out: OutputWriter, stages: readonly string[], run: { readonly id: string; readonly server?: string }) {
    this.#out = out;
    out.append(Buffer.from(`${JSON.stringify({ type: 'run', ...run })}\n`));
    this.tally = new StageTally(stages);
  }

  event(event: PublicRunEvent): void {
    this.tally.take(event);
    this.#out.append(Buffer.from(`${JSON.stringify(withApiStatus(event))}\n`));
  }

  lines(stage: string, stream: LogStreamName, bytes: Buffer, timestampMs: number): void | Promise<void> {
    const head = `{"type":"stage_log","stage":${JSON.stringify(stage)},"stream":${JSON.stringify(stream)},"line":`;
    const tail = `,"timestamp":"${this.#isoTime(timestampMs)}"}\n`;
    let text = '';
    for (let from = 0; from < bytes.length;) {
      const newline = bytes.indexOf(NEWLINE, from);
      const next = newline === -1 ? bytes.length : newline + 1;
      let end = newline === -1 ? bytes.length : newline;
      if (end > from && bytes[end - 1] === CARRIAGE_RETURN) end -= 1;
      text += `${head}${JSON.stringify(bytes.toString('utf8', from, end))}${tail}`;
      from = next;
    }
    return this.#out.write(Buffer.from(text));
  }

  /** An event whose text came from a server. */
  raw(text: string, event: PublicEvent): void {
    this.tally.take(event);
    const line = 'status' in event ? JSON.stringify(withApiStatus(event)) : text.replaceAll('\n', ' ');
    this.#out.append(Buffer.from(`${line}\n`));
  }

  finish(): void {}
}

function withApiStatus(event: PublicEvent): unknown {
  return 'status' in event ? { ...event, status: event.status.toUpperCase() } : event;
}
