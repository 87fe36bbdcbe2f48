/**
 * Gets what a slip is for (P31), of a stage or of its checkout: shows it to auth, once the session's lease lists the attempt, and opens
 * the answer.
 */
import { backoffMs, pauseOrAbort, unlessAborted } from '@penstock/async';
import type { CloneSecret, Job, SlipAnswer, SlipContent } from '@penstock/bus';

/** What an attempt has of its session for this. */
export interface SlipDesk {
  /** Rejects where auth does not answer. */
  present(slip: string, tokensOnly: boolean): Promise<SlipAnswer>;
  /** Resolves when the broker has been told what the lease lists now, or cannot be. */
  renewLease(): Promise<void>;
  /** Rejects for what was not sealed to this session. */
  open(sealed: string): Promise<Uint8Array>;
}

type JobOfSlip = Pick<Job, 'runId' | 'stage' | 'attempt'>;

/** `why`: a clause for the stage's log. */
type Refusal = { readonly why: string };
export type SlipOutcome = SlipContent | Refusal;

/** Auth, or its store, may be away for a moment; a stage that waits holds its slot. */
const WAIT_MS_MAX = 60_000;
const RETRY = { firstMs: 100, maxMs: 5_000 };

/** `tokensOnly`: no secrets. Rejects with the signal's reason. */
export async function redeemSlip(
  job: JobOfSlip & Pick<Job, 'slip'>,
  desk: SlipDesk,
  bootNow: () => number,
  signal: AbortSignal,
  tokensOnly = false,
): Promise<SlipOutcome> {
  if (job.slip === undefined)
    return { why: 'this server gives none: its scheduler has no SERVICE_SLIP_KEY, which it shares with auth' };
  // The attempt is new to the session: the lease is to list it first.
  await desk.renewLease();
  const outcome = await present(job, job.slip, { desk, bootNow, signal, tokensOnly });
  return outcome === 'none' ? { why: 'auth took its slip for another' } : outcome;
}

/** Undefined: the repository has no secret of its own, as most. Rejects with the signal's reason. */
export async function redeemCloneSlip(
  job: JobOfSlip,
  slip: string,
  desk: SlipDesk,
  bootNow: () => number,
  signal: AbortSignal,
): Promise<CloneSecret | Refusal | undefined> {
  const outcome = await present(job, slip, { desk, bootNow, signal, tokensOnly: false });
  if (outcome === 'none' || 'why' in outcome) return outcome === 'none' ? undefined : outcome;
  return outcome.clone ?? { why: 'auth took its slip for another' };
}

async function present(
  job: JobOfSlip,
  slip: string,
  {
    desk,
    bootNow,
    signal,
    tokensOnly,
  }: {
    readonly desk: SlipDesk;
    readonly bootNow: () => number;
    readonly signal: AbortSignal;
    readonly tokensOnly: boolean;
  },
): Promise<SlipOutcome | 'none'> {
  const deadline = bootNow() + WAIT_MS_MAX;
  for (let tries = 1; ; tries += 1) {
    const answer = await unlessAborted(desk.present(slip, tokensOnly), signal).catch((): SlipAnswer => ({
      kind: 'unavailable',
    }));
    signal.throwIfAborted();
    if (answer.kind === 'none') return 'none';
    if (answer.kind === 'refused') return { why: answer.why };
    if (answer.kind === 'sealed')
      return checked(job, JSON.parse(String(Buffer.from(await desk.open(answer.sealed)))) as SlipContent);
    if (bootNow() >= deadline) return { why: `auth did not answer within ${WAIT_MS_MAX / 1000} s` };
    // What the lease does not list yet is listed by its next renewal.
    if (answer.kind !== 'unlisted' || tries > 1) await pauseOrAbort(backoffMs(tries, RETRY), signal);
    signal.throwIfAborted();
    await desk.renewLease();
  }
}

/** Another attempt's content, which somebody could put in the way of this one's. */
function checked({ runId, stage, attempt }: JobOfSlip, content: SlipContent): SlipOutcome {
  if (content.run === runId && content.stage === stage && content.attempt === attempt) return content;
  return { why: 'auth answered for another stage' };
}
