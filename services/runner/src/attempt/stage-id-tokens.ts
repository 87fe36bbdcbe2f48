/**
 * The id tokens of one attempt: a file each, replaced when three quarters of their life are over, and renewed no more when the stage has
 * ended. Every one is masked in the stage's output. Where the files are is another's: `token-files.ts`.
 */
import type { Time } from '@penstock/async';
import type { IdTokens, Job } from '@penstock/bus';
import { redeemSlip, type SlipDesk } from '../session/slip-desk.ts';

export interface StageIdTokensOptions {
  readonly job: Job;
  readonly desk: SlipDesk;
  readonly time: Time;
  readonly place: TokenPlace;
  /** Before a new one is anywhere: so that it is masked. */
  readonly onTokens: (tokens: readonly string[]) => void;
  readonly remark: (text: string) => void;
}

/** Where a stage finds its tokens: they go with it. */
export interface TokenPlace {
  /** By variable: now, and instead of what was there. */
  write(tokens: ReadonlyMap<string, string>): void;
}

/** Of their life, after which they are renewed. */
const RENEWED_AT = 0.75;
/** After a renewal that failed: the last quarter has many of these. */
const RETRY_MS = 60_000;

export class StageIdTokens {
  readonly #options: StageIdTokensOptions;
  readonly #ending = new AbortController();
  #callOff: () => void = () => {};
  #underway: Promise<void> = Promise.resolve();

  constructor(options: StageIdTokensOptions) {
    this.#options = options;
  }

  /** Before the stage starts. */
  begin(tokens: IdTokens): void {
    this.#write(tokens);
    this.#renewIn(tokens.lifeMs * RENEWED_AT);
  }

  /** Of a stage that has its tokens, and nobody knows for how long. */
  takeUp(): void {
    this.#renewIn(0);
  }

  /** When the stage has ended: none is renewed any more. */
  stop(): void {
    this.#callOff();
    this.#ending.abort(new Error('the stage has ended'));
  }

  async end(): Promise<void> {
    this.stop();
    await this.#underway;
  }

  #renewIn(milliseconds: number): void {
    this.#callOff = this.#options.time.after(Math.max(1, Math.round(milliseconds)), () => {
      this.#underway = this.#renew();
    });
  }

  async #renew(): Promise<void> {
    const { job, desk, time, remark } = this.#options;
    const { signal } = this.#ending;
    try {
      const outcome = await redeemSlip(job, desk, () => time.bootNow(), signal, true);
      const renewed = 'why' in outcome ? outcome : (outcome.idTokens ?? { why: 'auth gives none any more' });
      if (!('why' in renewed)) {
        this.#write(renewed);
        return this.#renewIn(renewed.lifeMs * RENEWED_AT);
      }
      remark(`the id token was not renewed: ${renewed.why}`);
    } catch (error) {
      if (signal.aborted) return;
      remark(`the id token was not renewed: ${error instanceof Error ? error.message : String(error)}`);
    }
    this.#renewIn(RETRY_MS);
  }

  #write({ tokens }: IdTokens): void {
    const { job, place, onTokens } = this.#options;
    onTokens(Object.values(tokens));
    const { idTokens = [] } = job;
    place.write(new Map(idTokens.map(({ audience, variable }) => [variable, tokens[audience] ?? ''])));
  }
}
