/**
 * The device flow: a code for a person to approve elsewhere, and what the client that polls for it is answered. Where the
 * provider has a device flow of its own the person approves there; else on our page, after a login through the provider.
 *
 *  DEVICE-1 A code ends once: approved, denied, or over after 15 minutes. Which, is decided by an insert; the first one counts.
 *  DEVICE-2 An approved code gives out one session. Polled again it is over.
 *  DEVICE-3 Nothing but the client holds the device code: we keep its hash. The provider's own code is sealed inside it.
 *  DEVICE-4 Polling too fast changes nothing of the outcome: what is decided is answered at once.
 */
import { randomInt } from 'node:crypto';
import { Unavailable } from '@penstock/errors';
import type { Collection, DocumentStore } from '@penstock/store';
import { deviceCodesSpec, type DeviceRow, type UserRow } from '../model/collections.ts';
import { LoginNotAllowed } from '../model/errors.ts';
import type { OneTimeClaims } from '../model/one-time-claims.ts';
import type { Profile } from '../model/profile.ts';
import type { IdentityProvider } from '../providers/port.ts';
import { Pacing } from './pacing.ts';
import { hashOf, randomText, type Secrets } from '../model/secrets.ts';

const DEVICE_LIFETIME_SECS = 900;
const POLL_INTERVAL_SECS = 5;
export const DEVICE_PAGE = '/auth/device/verify';

export interface DeviceAnswer {
  readonly device_code: string;
  readonly user_code: string;
  readonly verification_uri: string;
  readonly verification_uri_complete?: string | undefined;
  readonly expires_in: number;
  readonly interval: number;
}

export type PollOutcome =
  | { readonly kind: 'unknown' | 'expired' | 'denied' | 'pending' }
  | { readonly kind: 'slow_down'; readonly intervalSecs: number }
  | { readonly kind: 'authorized'; readonly user: UserRow };

export interface DeviceFlowOptions {
  readonly claims: OneTimeClaims;
  readonly secrets: Secrets;
  readonly provider: () => Promise<IdentityProvider>;
  readonly baseUrl: () => string;
  /** The user that an account of the provider stands for. */
  readonly signedIn: (profile: Profile) => Promise<UserRow>;
  /** Null also for one whom nothing lets in any more since the code was approved. */
  readonly userOf: (id: string) => Promise<UserRow | null>;
  readonly now: () => number;
}

/** These twenty letters cannot be taken for one another and spell no words: they make 20^8 codes (RFC 8628, 6.1). */
const LETTERS = 'BCDFGHJKLMNPQRSTVWXZ';
const LETTERS_COUNT = 8;
/** With a million codes under way a second try is needed once in 25,000 logins. */
const USER_CODE_TRIES_MAX = 10;
const AGENT_LENGTH_MAX = 120;
/** Decisions are kept a little longer than the code, so that the last poll still finds them. */
const CLAIM_EXTRA_MS = 60_000;
const CODE_LENGTH_MAX = 4_096;

export class DeviceFlow {
  readonly #rows: Collection<typeof deviceCodesSpec>;
  readonly #options: DeviceFlowOptions;
  readonly #pacing = new Pacing(POLL_INTERVAL_SECS);

  constructor(store: DocumentStore, options: DeviceFlowOptions) {
    this.#rows = store.collection(deviceCodesSpec);
    this.#options = options;
  }

  async begin(client: { readonly ip: string; readonly agent: string }): Promise<DeviceAnswer> {
    const provider = await this.#options.provider();
    const started = (await provider.device?.begin()) ?? null;
    const lifetime = { expires_in: DEVICE_LIFETIME_SECS, interval: POLL_INTERVAL_SECS };
    if (started !== null) {
      const deviceCode = this.#options.secrets.seal('device-code', { code: started.providerCode });
      await this.#rows.insert(this.#row(hashOf(deviceCode), deviceCode, 'provider', client));
      const complete = started.verificationUriComplete;
      return {
        device_code: deviceCode,
        user_code: started.userCode,
        verification_uri: started.verificationUri,
        ...(complete === undefined ? {} : { verification_uri_complete: complete }),
        ...lifetime,
      };
    }
    const deviceCode = randomText();
    const userCode = shownCode(await this.#newUserCode(deviceCode, client));
    const page = `${this.#options.baseUrl()}${DEVICE_PAGE}`;
    return {
      device_code: deviceCode,
      user_code: userCode,
      verification_uri: page,
      verification_uri_complete: `${page}?user_code=${userCode}`,
      ...lifetime,
    };
  }

  async poll(deviceCode: string): Promise<PollOutcome> {
    if (deviceCode === '' || deviceCode.length > CODE_LENGTH_MAX) return { kind: 'unknown' };
    const deviceHash = hashOf(deviceCode);
    const [row] = await this.#rows.list({ where: { deviceHash }, limit: 1 });
    if (row === undefined) return { kind: 'unknown' };
    if ((await this.#options.claims.get(spentId(row))) !== null) return { kind: 'expired' };
    const tooFast = this.#pacing.isTooFast(row.id, this.#options.now());
    const outcome = row.runBy === 'provider' ? await this.#askProvider(row, deviceCode) : await this.#decided(row);
    if (outcome.kind === 'authorized' && !(await this.#spend(row))) return { kind: 'expired' };
    if (outcome.kind === 'slow_down')
      return { kind: 'slow_down', intervalSecs: this.#pacing.atLeast(row.id, outcome.intervalSecs) };
    if (outcome.kind === 'pending' && tooFast) return { kind: 'slow_down', intervalSecs: this.#pacing.slower(row.id) };
    return outcome;
  }

  /** A code of our own flow that waits for its approval, in whatever form a person types it. Null: none. */
  async waiting(typed: string): Promise<DeviceRow | null> {
    const userCode = plainCode(typed);
    if (userCode === null) return null;
    const row = await this.#rows.get(userCode);
    if (row === null || row.runBy !== 'own' || row.expiresAt <= this.#options.now()) return null;
    return (await this.#options.claims.get(decisionId(row))) === null ? row : null;
  }

  /** False: it was decided before, or is over. */
  async decide(userCode: string, decision: 'approved' | 'denied', userId: string): Promise<boolean> {
    const row = await this.waiting(userCode);
    return row !== null && (await this.#claim(decisionId(row), row, { value: decision, userId }));
  }

  /** Another code under way may be the same: then another one. */
  async #newUserCode(deviceCode: string, client: { readonly ip: string; readonly agent: string }): Promise<string> {
    for (let tries = 0; tries < USER_CODE_TRIES_MAX; tries += 1) {
      const userCode = newUserCode();
      if ((await this.#rows.insert(this.#row(userCode, deviceCode, 'own', client))) === 'inserted') return userCode;
    }
    throw new Unavailable('Too many logins are waiting for an approval; try again in a minute.');
  }

  async #decided(row: DeviceRow): Promise<PollOutcome> {
    const decision = await this.#options.claims.get(decisionId(row));
    if (decision?.value === 'denied') return { kind: 'denied' };
    if (row.expiresAt <= this.#options.now()) return { kind: 'expired' };
    if (decision === null) return { kind: 'pending' };
    const user = await this.#options.userOf(decision.userId);
    return user === null ? { kind: 'expired' } : { kind: 'authorized', user };
  }

  async #askProvider(row: DeviceRow, deviceCode: string): Promise<PollOutcome> {
    const sealed = this.#options.secrets.open<{ code: string }>('device-code', deviceCode);
    const decision = await this.#options.claims.get(decisionId(row));
    if (decision?.value === 'denied') return { kind: 'denied' };
    if (sealed === null || decision !== null || row.expiresAt <= this.#options.now()) return { kind: 'expired' };
    const provider = await this.#options.provider();
    const answer = (await provider.device?.poll(sealed.code)) ?? { kind: 'expired' as const };
    // Every later poll is answered alike, whatever the provider says by then.
    if (answer.kind === 'denied' || answer.kind === 'expired')
      await this.#claim(decisionId(row), row, { value: answer.kind });
    if (answer.kind !== 'authorized') return answer;
    try {
      return { kind: 'authorized', user: await this.#options.signedIn(answer.profile) };
    } catch (error) {
      if (!(error instanceof LoginNotAllowed)) throw error;
      await this.#claim(decisionId(row), row, { value: 'denied' });
      return { kind: 'denied' };
    }
  }

  async #spend(row: DeviceRow): Promise<boolean> {
    return await this.#claim(spentId(row), row, {});
  }

  async #claim(
    id: string,
    row: DeviceRow,
    what: { readonly value?: string; readonly userId?: string },
  ): Promise<boolean> {
    return await this.#options.claims.take(id, {
      ...what,
      at: this.#options.now(),
      expiresAt: row.expiresAt + CLAIM_EXTRA_MS,
    });
  }

  #row(
    id: string,
    deviceCode: string,
    runBy: 'own' | 'provider',
    { ip, agent }: { readonly ip: string; readonly agent: string },
  ): DeviceRow {
    const createdAt = this.#options.now();
    return {
      id,
      deviceHash: hashOf(deviceCode),
      runBy,
      ip,
      agent: agent.slice(0, AGENT_LENGTH_MAX).toWellFormed(),
      createdAt,
      expiresAt: createdAt + DEVICE_LIFETIME_SECS * 1000,
    };
  }
}

/** The id has the device's hash in it, since a user code may come again when it is long over. */
const decisionId = ({ deviceHash }: DeviceRow): string => `device.${deviceHash}`;
const spentId = ({ deviceHash }: DeviceRow): string => `spent.${deviceHash}`;

function newUserCode(): string {
  return Array.from({ length: LETTERS_COUNT }, () => LETTERS[randomInt(LETTERS.length)]).join('');
}

/** `BCDF-GHJK` */
export function shownCode(userCode: string): string {
  return `${userCode.slice(0, LETTERS_COUNT / 2)}-${userCode.slice(LETTERS_COUNT / 2)}`;
}

export function isCode(typed: string): boolean {
  return plainCode(typed) !== null;
}

/** Case, blanks and dashes do not matter. Null: not a code. */
function plainCode(typed: string): string | null {
  const letters = typed
    .slice(0, 100)
    .toUpperCase()
    .replace(/[^A-Z]/gu, '');
  return letters.length === LETTERS_COUNT && [...letters].every((letter) => LETTERS.includes(letter)) ? letters : null;
}
