/**
 * Slips (P31): what the owner of a run signs so that the runner of one attempt may ask auth for what its stage names. A slip is no
 * secret: auth answers it to that runner only, sealed to its session.
 */
import { createHmac, timingSafeEqual } from 'node:crypto';
import type { CloneSecret } from './clone-secret.ts';

export interface Slip {
  readonly run: string;
  readonly stage: string;
  readonly attempt: number;
  readonly runner: string;
  readonly session: string;
  readonly tenant: string;
  readonly pipeline: string;
  readonly trusted: boolean;
  /** Of a rerun with another file than its repository's (P30). */
  readonly edited?: true | undefined;
  /** What began the run: `push`, `schedule`, `api`, …; `dispatch` where the API was asked for a ref of a repository. */
  readonly trigger: string;
  readonly provider?: string | undefined;
  readonly repository?: string | undefined;
  readonly ref?: string | undefined;
  readonly commit?: string | undefined;
  readonly actor?: string | undefined;
  /** Of secrets, each once. */
  readonly names: readonly string[];
  /** Of id tokens, each once; absent: none. */
  readonly audiences?: readonly string[] | undefined;
  /** The slip is for the attempt's checkout alone: where its repository is read from, which may have a secret of its own. */
  readonly cloneUrl?: string | undefined;
  /** Milliseconds since 1970: the attempt cannot live longer. */
  readonly until: number;
}

/** `slip.<runner>` */
export interface SlipRequest {
  readonly slip: string;
  /** The stage has its secrets, and asks for new id tokens alone. */
  readonly tokensOnly?: boolean | undefined;
}

/**
 * `sealed`: a JWE that the session's key opens, of a `SlipContent`. `unlisted`: the session's lease does not list the attempt,
 * yet or any more: worth another try after a renewal. `refused`: it never will be answered otherwise; `why` ends a sentence. `none`:
 * the repository has no secret of its own, and is read with what the server has.
 */
export type SlipAnswer =
  | { readonly kind: 'sealed'; readonly sealed: string }
  | { readonly kind: 'none' }
  | { readonly kind: 'unlisted' }
  | { readonly kind: 'unavailable' }
  | { readonly kind: 'refused'; readonly why: string };

export interface SlipContent {
  /** Whose it is: what is for another attempt is dropped. */
  readonly run: string;
  readonly stage: string;
  readonly attempt: number;
  /** Values by the names of their secrets, in base64. */
  readonly values: Readonly<Record<string, string>>;
  /** Those that are not given, each with a sentence for the stage's log. */
  readonly withheld: readonly { readonly name: string; readonly why: string }[];
  /** Absent: the slip asks for none. `why`: it gets none; a clause for the stage's log. */
  readonly idTokens?: IdTokens | { readonly why: string } | undefined;
  /** Of a slip for the checkout. */
  readonly clone?: CloneSecret | undefined;
}

export interface IdTokens {
  /** By their audiences. */
  readonly tokens: Readonly<Record<string, string>>;
  /** For how long from now they are taken, milliseconds. */
  readonly lifeMs: number;
}

/** `key`: 32 bytes in base64; without one it is signed by nobody, and claims what it says. */
export function signSlip(key: string | undefined, slip: Slip): string {
  const body = Buffer.from(JSON.stringify(slip)).toString('base64url');
  return `${body}.${key === undefined ? '' : signatureOf(key, body).toString('base64url')}`;
}

/** Null where it was not signed by this key. */
export function readSlip(key: string, text: string): Slip | null {
  const [body = '', signature = ''] = text.split('.');
  const given = Buffer.from(signature, 'base64url');
  const right = signatureOf(key, body);
  if (given.length !== right.length || !timingSafeEqual(given, right)) return null;
  return JSON.parse(Buffer.from(body, 'base64url').toString('utf8')) as Slip;
}

/** What a slip says, whoever has written it; null where it says nothing. */
export function claimsOfSlip(text: string): Partial<Slip> | null {
  try {
    const claims: unknown = JSON.parse(Buffer.from(text.split('.')[0] ?? '', 'base64url').toString('utf8'));
    return typeof claims === 'object' ? claims : null;
  } catch {
    return null;
  }
}

function signatureOf(key: string, body: string): Buffer {
  return createHmac('sha256', Buffer.from(key, 'base64')).update('penstock slip\n').update(body).digest();
}
