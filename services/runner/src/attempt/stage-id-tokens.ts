/**
 * The id tokens of one attempt: a file each in a folder of its run, which no other run sees, replaced in place when three quarters
 * of their life are over, and removed when the stage has ended. Every one is masked in the stage's output.
 */
import { randomUUID } from 'node:crypto';
import { open, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Time } from '@penstock/async';
import type { IdTokens, Job } from '@penstock/bus';
import type { StageSecrets, StageUser } from '@penstock/executor';
import { redeemSlip, type SlipDesk } from '../session/slip-desk.ts';

export interface StageIdTokensOptions {
  readonly job: Job;
  readonly desk: SlipDesk;
  readonly time: Time;
  readonly mask: StageSecrets['mask'];
  /** Of the run, where a stage finds it. */
  readonly folder: string;
  readonly user: StageUser | undefined;
  readonly remark: (text: string) => void;
}

/** Of their life, after which they are renewed. */
const RENEWED_AT = 0.75;
/** After a renewal that failed: the last quarter has many of these. */
const RETRY_MS = 60_000;

export class StageIdTokens {
  /** Variables of the stage: the paths of the files. */
  readonly env: Readonly<Record<string, string>>;
  readonly #options: StageIdTokensOptions;
  readonly #folder: string;
  readonly #ending = new AbortController();
  #callOff: () => void = () => {};
  #underway: Promise<void> = Promise.resolve();

  constructor(options: StageIdTokensOptions) {
    this.#options = options;
    this.#folder = options.folder;
    const { idTokens = [] } = options.job;
    this.env = Object.fromEntries(
      idTokens.map(({ variable }) => [variable, join(this.#folder, `id-token-${randomUUID()}`)]),
    );
  }

  /** Before the stage starts. */
  async begin(tokens: IdTokens): Promise<void> {
    if (Object.keys(this.env).length === 0) return;
    await this.#write(tokens);
    this.#renewIn(tokens.lifeMs * RENEWED_AT);
  }

  /** When the stage has ended: none is renewed any more. */
  stop(): void {
    this.#callOff();
    this.#ending.abort(new Error('the stage has ended'));
  }

  async end(): Promise<void> {
    this.stop();
    await this.#underway;
    await Promise.all(Object.values(this.env).map((path) => rm(path, { force: true, recursive: true })));
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
        await this.#write(renewed);
        return this.#renewIn(renewed.lifeMs * RENEWED_AT);
      }
      remark(`the id token was not renewed: ${renewed.why}`);
    } catch (error) {
      if (signal.aborted) return;
      remark(`the id token was not renewed: ${error instanceof Error ? error.message : String(error)}`);
    }
    this.#renewIn(RETRY_MS);
  }

  /** The folder is the stage's to write: a file is made under a name that nobody can know, and takes the place of whatever is there. */
  async #write({ tokens }: IdTokens): Promise<void> {
    const { job, mask, user } = this.#options;
    mask.add(Object.values(tokens));
    for (const { audience, variable } of job.idTokens ?? []) {
      const incoming = join(this.#folder, `.id-token-${randomUUID()}`);
      const file = await open(incoming, 'wx', 0o600);
      try {
        await file.writeFile(tokens[audience] ?? '');
        if (user !== undefined) await file.chown(user.uid, user.gid);
      } finally {
        await file.close();
      }
      await rename(incoming, this.env[variable] ?? '');
    }
  }
}
