/**
 * How far a client has come in the event stream of a run: the position in both of its orders, that of the run's events and
 * that of its log in the stream `LOGS`. It survives any interleaving of the two, so it stays valid when the event stream is
 * merged again.
 */

/** Where a message stands. `note`: one of the messages that only the event of `version` brings about, just before it. */
export type StreamPosition =
  | { readonly kind: 'event'; readonly version: number }
  | { readonly kind: 'line'; readonly sequence: number; readonly index: number }
  | { readonly kind: 'note'; readonly version: number; readonly index: number };

const ENCODED = /^(\d{1,15})\.(\d{1,15})\.(\d{1,15})\.(\d{1,15})\.([0-9a-f]{4})$/u;
const ENCODED_LENGTH_MAX = 120;

export class Cursor {
  /** Of the last event that was emitted. */
  version = 0;
  /** Of the chunk whose line was emitted last. */
  sequence = 0;
  /** How many lines at that sequence were emitted. */
  lines = 0;
  /** How many notes before the event `version + 1` were emitted. */
  notes = 0;

  /** Null: the text is not a cursor of this run. */
  static decode(text: string, runId: string): Cursor | null {
    if (text.length > ENCODED_LENGTH_MAX) return null;
    const match = ENCODED.exec(Buffer.from(text, 'base64url').toString('latin1'));
    if (match === null || match[5] !== runId.slice(-4)) return null;
    const cursor = new Cursor();
    [cursor.version = 0, cursor.sequence = 0, cursor.lines = 0, cursor.notes = 0] = match.slice(1, 5).map(Number);
    return cursor.encode(runId) === text ? cursor : null;
  }

  encode(runId: string): string {
    return Buffer.from(
      `${this.version}.${this.sequence}.${this.lines}.${this.notes}.${runId.slice(-4)}`,
      'latin1',
    ).toString('base64url');
  }

  copy(): Cursor {
    return Object.assign(new Cursor(), this);
  }

  /** False: the message was emitted before. */
  admits(position: StreamPosition): boolean {
    switch (position.kind) {
      case 'event':
        return position.version > this.version;
      case 'line':
        return (
          position.sequence > this.sequence || (position.sequence === this.sequence && position.index >= this.lines)
        );
      case 'note':
        return (
          position.version > this.version && !(position.version === this.version + 1 && position.index < this.notes)
        );
    }
  }

  /** Call it only for positions that it admits. */
  advance(position: StreamPosition): void {
    switch (position.kind) {
      case 'event':
        this.version = position.version;
        this.notes = 0;
        return;
      case 'line':
        this.sequence = position.sequence;
        this.lines = position.index + 1;
        return;
      case 'note':
        this.version = Math.max(this.version, position.version - 1);
        this.notes = position.index + 1;
        return;
    }
  }

  /** Whether everything up to `other` lies before this cursor too. */
  covers(other: Cursor): boolean {
    const events = this.version > other.version || (this.version === other.version && this.notes >= other.notes);
    const log = this.sequence > other.sequence || (this.sequence === other.sequence && this.lines >= other.lines);
    return events && log;
  }
}
