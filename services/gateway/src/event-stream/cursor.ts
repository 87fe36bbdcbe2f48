/**
 * How much of a run's story somebody has been told: the place in both of its orders, that of the run's events and that
 * of its log in the stream. It survives any interleaving of the two, so it stays valid when the story is told again.
 */

/** Where a message stands. `note`: one of the messages that only the event of `version` brings about, just before it. */
export type Place =
  | { readonly kind: 'event'; readonly version: number }
  | { readonly kind: 'line'; readonly sequence: number; readonly index: number }
  | { readonly kind: 'note'; readonly version: number; readonly index: number };

const ENCODED = /^(\d{1,15})\.(\d{1,15})\.(\d{1,15})\.(\d{1,15})\.([0-9a-f]{4})$/u;
const ENCODED_LENGTH_MAX = 120;

export class Told {
  /** Of the last event told. */
  version = 0;
  /** Of the chunk whose line was told last. */
  sequence = 0;
  /** How many lines at that sequence were told. */
  lines = 0;
  /** How many notes before the event `version + 1` were told. */
  notes = 0;

  /** Null: not a cursor of this run's. */
  static decode(cursor: string, runId: string): Told | null {
    if (cursor.length > ENCODED_LENGTH_MAX) return null;
    const match = ENCODED.exec(Buffer.from(cursor, 'base64url').toString('latin1'));
    if (match === null || match[5] !== runId.slice(-4)) return null;
    const told = new Told();
    [told.version = 0, told.sequence = 0, told.lines = 0, told.notes = 0] = match.slice(1, 5).map(Number);
    return told.encode(runId) === cursor ? told : null;
  }

  encode(runId: string): string {
    return Buffer.from(
      `${this.version}.${this.sequence}.${this.lines}.${this.notes}.${runId.slice(-4)}`,
      'latin1',
    ).toString('base64url');
  }

  copy(): Told {
    return Object.assign(new Told(), this);
  }

  /** False: it was told before. */
  admits(place: Place): boolean {
    switch (place.kind) {
      case 'event':
        return place.version > this.version;
      case 'line':
        return place.sequence > this.sequence || (place.sequence === this.sequence && place.index >= this.lines);
      case 'note':
        return place.version > this.version && !(place.version === this.version + 1 && place.index < this.notes);
    }
  }

  /** Call it for places that it admits only. */
  advance(place: Place): void {
    switch (place.kind) {
      case 'event':
        this.version = place.version;
        this.notes = 0;
        return;
      case 'line':
        this.sequence = place.sequence;
        this.lines = place.index + 1;
        return;
      case 'note':
        this.version = Math.max(this.version, place.version - 1);
        this.notes = place.index + 1;
        return;
    }
  }

  /** Whether everything that `other` was told was told here too. */
  covers(other: Told): boolean {
    const events = this.version > other.version || (this.version === other.version && this.notes >= other.notes);
    const log = this.sequence > other.sequence || (this.sequence === other.sequence && this.lines >= other.lines);
    return events && log;
  }
}
