/**
 * Tells who follows a run which stages wait for approval: the stream says nothing while they do. One may have begun to where there is
 * news of stages, so a moment after that the server is asked, and of a busy run every few seconds at most.
 */
import type { PublicEvent } from '@penstock/run/public-events';
import { printableText } from '../output/printable-text.ts';
import { ask } from './graphql.ts';
import type { ServerClient } from './http-client.ts';
import { fieldOf, listOf } from './json.ts';

const SOON_MS = 1_000;
const AGAIN_MS = 5_000;

export class GateNotes {
  readonly #client: ServerClient;
  readonly #runId: string;
  readonly #note: (line: string) => void;
  readonly #told = new Set<string>();
  #timer: NodeJS.Timeout | undefined;
  #lookedAt = Number.NEGATIVE_INFINITY;

  constructor(client: ServerClient, runId: string, note: (line: string) => void) {
    this.#client = client;
    this.#runId = runId;
    this.#note = note;
    this.#lookSoon();
  }

  happened({ type }: Pick<PublicEvent, 'type'>): void {
    if (type !== 'stage_log') this.#lookSoon();
  }

  stop(): void {
    clearTimeout(this.#timer);
  }

  #lookSoon(): void {
    if (this.#timer !== undefined) return;
    const waitMs = Math.max(SOON_MS, this.#lookedAt + AGAIN_MS - performance.now());
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      this.#lookedAt = performance.now();
      void this.#look();
    }, waitMs).unref();
  }

  /** It is a help only: what cannot be learnt is not told. */
  async #look(): Promise<void> {
    const query = 'query ($id: String) { run(id: $id) { stages { name status waitingOn { kind } } } }';
    const answer = await ask(this.#client, query, { id: this.#runId }).catch(() => undefined);
    for (const stage of listOf(fieldOf(answer?.data, 'run'), 'stages')) {
      const name = fieldOf(stage, 'name');
      // Those of a run that nobody has approved are not QUEUED.
      const isOpen =
        fieldOf(stage, 'status') === 'QUEUED' &&
        listOf(stage, 'waitingOn').some((wait) => fieldOf(wait, 'kind') === 'approval');
      if (!isOpen || typeof name !== 'string' || this.#told.has(name)) continue;
      this.#told.add(name);
      const shown = printableText(name);
      const word = shellWord(shown);
      this.#note(
        `penstock: '${shown}' waits for approval: penstock approve ${this.#runId} ${word}, or penstock reject ${this.#runId} ${word}`,
      );
    }
  }
}

/** As it can be copied into a shell: a stage may be called `deploy; reboot`, or `--help`. */
function shellWord(text: string): string {
  const word = /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", String.raw`'\''`)}'`;
  return text.startsWith('-') ? `-- ${word}` : word;
}
