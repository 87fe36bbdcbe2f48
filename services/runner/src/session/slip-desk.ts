/**
 * Gets what a stage's slip names (P31): shows it to auth, once the session's lease lists the attempt, and opens the answer.
 */
import { backoffMs, pauseOrAbort, unlessAborted } from '@penstock/async';
import type { Job, SlipAnswer, SlipContent } from '@penstock/bus';

/** What an attempt has of its session for this. */
export interface SlipDesk {
  /** Rejects where auth does not answer. */
  present(slip: string, tokensOnly: boolean): Promise<SlipAnswer>;
  /** Resolves when the broker has been told what the lease lists now, or cannot be. */
  renewLease(): Promise<void>;
  /** Rejects for what was not sealed to this session. */
  open(sealed: string): Promise<Uint8Array>;
}

/** `why`: a clause for the stage's log. */
export type SlipOutcome = SlipContent | { readonly why: string };

/** Auth, or its store, may be away for a moment; a stage that waits holds its slot. */
const WAIT_MS_MAX = 60_000;
const RETRY = { firstMs: 100, maxMs: 5_000 };

/** `tokensOnly`: no secrets. Rejects with the signal's reason. */
export async function redeemSlip(
  job: Pick<Job, 'runId' | 'stage' | 'attempt' | 'slip'>,
  desk: SlipDesk,
  bootNow: () => number,
  signal: AbortSignal,
  tokensOnly = false,
): Promise<SlipOutcome> {
  if (job.slip === undefined)
    return { why: 'this server gives none: its scheduler has no SERVICE_SLIP_KEY, which it shares with auth' };
  const deadline = bootNow() + WAIT_MS_MAX;
  for (let tries = 1; ; tries += 1) {
    // The attempt is new to the session: the lease is to list it first.
    await desk.renewLease();
    const answer = await unlessAborted(desk.present(job.slip, tokensOnly), signal).catch((): SlipAnswer => ({
      kind: 'unavailable',
    }));
    signal.throwIfAborted();
    if (answer.kind === 'refused') return { why: answer.why };
    if (answer.kind === 'sealed')
      return checked(job, JSON.parse(String(Buffer.from(await desk.open(answer.sealed)))) as SlipContent);
    if (bootNow() >= deadline) return { why: `auth did not answer within ${WAIT_MS_MAX / 1000} s` };
    await pauseOrAbort(backoffMs(tries, RETRY), signal);
    signal.throwIfAborted();
  }
}

/** Another attempt's content, which somebody could put in the way of this one's. */
function checked(
  { runId, stage, attempt }: Pick<Job, 'runId' | 'stage' | 'attempt'>,
  content: SlipContent,
): SlipOutcome {
  if (content.run === runId && content.stage === stage && content.attempt === attempt) return content;
  return { why: 'auth answered for another stage' };
}
