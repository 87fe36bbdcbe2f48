/**
 * The events of large runs as their documents have them, so that the next document of such a run costs what has happened since, and
 * not all of it again. Kept for those that were written last, within a bound; of others everything is encoded anew.
 */
import type { EncodedEvents } from '@penstock/store';
import type { LiveRun } from '../run/live-run.ts';

/** Encoding less than this takes less than half a millisecond. */
const CHARACTERS_MIN = 64 * 1024;
/** Of all texts of a scheduler that are kept: two of the largest stories that there are. */
const CHARACTERS_MAX = 64 * 1024 * 1024;

export class EncodedStories {
  /** The one that was written longest ago first. */
  readonly #texts = new Map<LiveRun, EncodedEvents>();
  readonly #charactersMax: number;
  #characters = 0;

  constructor(charactersMax = CHARACTERS_MAX) {
    this.#charactersMax = charactersMax;
  }

  get(run: LiveRun): EncodedEvents | undefined {
    return this.#texts.get(run);
  }

  keep(run: LiveRun, events: EncodedEvents): void {
    this.forget(run);
    if (events.text.length < CHARACTERS_MIN || events.text.length > this.#charactersMax) return;
    this.#texts.set(run, events);
    this.#characters += events.text.length;
    for (const oldest of this.#texts.keys()) {
      if (this.#characters <= this.#charactersMax) break;
      this.forget(oldest);
    }
  }

  forget(run: LiveRun): void {
    this.#characters -= this.#texts.get(run)?.text.length ?? 0;
    this.#texts.delete(run);
  }
}
