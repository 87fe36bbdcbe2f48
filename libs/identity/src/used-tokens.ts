/**
 * When personal tokens were last used, reported to auth. It owns what is not reported yet: one time a token, at most 1,000 tokens.
 * The first use is reported at once, so that it shows; later ones in batches, or when somebody wants to see them. What cannot be
 * reported waits for the next batch.
 */
import type { Bus } from '@penstock/bus';
import { callAuth } from './auth-client.ts';

/** How long a batch is collected; the time shown for a token may be old by that much. */
const BATCH_MS = 5_000;
/** What one call of auth takes. Beyond it the tokens used longest ago are forgotten: only their times are lost. */
const TOKENS_MAX = 1_000;
const TELL_MS_MAX = 5_000;
/** Neither a process that stops nor a list of tokens waits long for a time that is reported later anyway. */
const AWAITED_TELL_MS_MAX = 1_000;

export class UsedTokens {
  readonly #bus: Bus;
  #unreported = new Map<string, number>();
  #timer: NodeJS.Timeout | undefined;
  #toldAt = -Infinity;
  #telling: Promise<void> | null = null;

  constructor(bus: Bus) {
    this.#bus = bus;
  }

  /** `at` in milliseconds since 1970. Never waits. */
  note(tokenId: string, at: number): void {
    this.#unreported.delete(tokenId);
    this.#unreported.set(tokenId, at);
    if (this.#unreported.size > TOKENS_MAX) this.#unreported.delete(this.#unreported.keys().next().value ?? '');
    if (this.#timer !== undefined || this.#telling !== null) return;
    const waitMs = Math.max(0, this.#toldAt + BATCH_MS - performance.now());
    if (waitMs === 0) void this.#tell();
    else this.#wait(waitMs);
  }

  /** Tells what was noted before, for who is about to look; resolves also where auth does not answer. */
  async flush(): Promise<void> {
    // What is being reported may lack the newest use, so then there is one more round.
    for (let round = 0; round < 2 && (this.#telling !== null || this.#unreported.size > 0); round += 1) {
      if (this.#telling === null) {
        clearTimeout(this.#timer);
        this.#timer = undefined;
        void this.#tell(AWAITED_TELL_MS_MAX);
      }
      await this.#telling;
    }
  }

  /** Reports the rest, where auth answers in time. */
  async close(): Promise<void> {
    clearTimeout(this.#timer);
    await this.#telling;
    clearTimeout(this.#timer);
    this.#timer = undefined;
    if (this.#unreported.size > 0 && this.#bus.connected) await this.#send(AWAITED_TELL_MS_MAX);
  }

  #wait(milliseconds: number): void {
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      void this.#tell();
    }, milliseconds);
    this.#timer.unref();
  }

  async #tell(deadlineMs = TELL_MS_MAX): Promise<void> {
    this.#telling = this.#send(deadlineMs);
    await this.#telling;
    this.#telling = null;
    if (this.#unreported.size > 0 && this.#timer === undefined) this.#wait(BATCH_MS);
  }

  async #send(deadlineMs: number): Promise<void> {
    this.#toldAt = performance.now();
    const reported = this.#unreported;
    this.#unreported = new Map();
    try {
      await callAuth(
        this.#bus,
        'token.used',
        { used: [...reported].map(([tokenId, at]) => ({ tokenId, at })) },
        deadlineMs,
      );
    } catch {
      // A later use of the same token is already newer.
      for (const [tokenId, at] of reported)
        if (!this.#unreported.has(tokenId) && this.#unreported.size < TOKENS_MAX) this.#unreported.set(tokenId, at);
    }
  }
}
