/**
 * Views of runs that were read from the store: a page of a pipeline is asked for again and again, and of what it shows hardly anything
 * has changed meanwhile. A document of one version is the same for ever.
 *
 *  VIEWS-1 A view is given again only for the very version that the store names now.
 *  VIEWS-2 What is kept is bounded in characters, of which each takes a few bytes; what was longest unasked goes first.
 *  VIEWS-3 Whoever reads a view has run and stages as objects of its own.
 */
import type { RunView } from '@penstock/run';
import type { KnownVersion } from './port.ts';

/** What a list of the store says of a document without reading it. */
export interface ViewVersion {
  readonly id: string;
  readonly incarnation: number;
  readonly sequence: number;
}

export interface KeptView {
  readonly view: RunView;
  /** Of its text. */
  readonly characters: number;
}

interface Entry extends KeptView, ViewVersion {}

/** For who answers clients: some thousand views, and about 20 MiB of memory. */
export const KEPT_VIEW_CHARACTERS = 4 * 1024 * 1024;
/** A larger one is rare, and would take the place of many. */
const VIEW_CHARACTERS_MAX = 64 * 1024;

export class ViewCache {
  readonly #charactersMax: number;
  readonly #entries = new Map<string, Entry>();
  #characters = 0;

  /** 0: nothing is kept. */
  constructor(charactersMax: number) {
    this.#charactersMax = charactersMax;
  }

  get charactersMax(): number {
    return this.#charactersMax;
  }

  /** Of those ids that are kept. */
  versionsOf(ids: readonly string[]): KnownVersion[] {
    return ids.flatMap((id) => {
      const entry = this.#entries.get(id);
      return entry === undefined ? [] : [[id, entry.incarnation, entry.sequence] as const];
    });
  }

  has({ id, incarnation, sequence }: ViewVersion): boolean {
    const entry = this.#entries.get(id);
    return entry?.sequence === sequence && entry.incarnation === incarnation;
  }

  /** Undefined: it is not kept, or as another version. */
  get(version: ViewVersion, { withStages }: { readonly withStages: boolean }): KeptView | undefined {
    const entry = this.#entries.get(version.id);
    if (entry === undefined || !this.has(version)) return undefined;
    this.#entries.delete(version.id);
    this.#entries.set(version.id, entry);
    const view = withStages ? ownCopy(entry.view) : { ...entry.view, stages: [] };
    return { view, characters: entry.characters };
  }

  keep({ id, incarnation, sequence }: ViewVersion, view: RunView, characters: number): void {
    this.#forget(id);
    if (characters > Math.min(VIEW_CHARACTERS_MAX, this.#charactersMax)) return;
    this.#entries.set(id, { id, incarnation, sequence, view: ownCopy(view), characters });
    this.#characters += characters;
    for (const oldest of this.#entries.keys()) {
      if (this.#characters <= this.#charactersMax) break;
      this.#forget(oldest);
    }
  }

  #forget(id: string): void {
    this.#characters -= this.#entries.get(id)?.characters ?? 0;
    this.#entries.delete(id);
  }
}

/** What lies deeper is changed by nobody. */
function ownCopy(view: RunView): RunView {
  return { ...view, stages: view.stages.map((stage) => ({ ...stage })) };
}
