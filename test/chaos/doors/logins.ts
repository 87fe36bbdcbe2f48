/**
 * People who log in by a browser and a device, and then use their session: they refresh it again and again, repeat a refresh whose
 * answer was lost, have it rotated, and some log out. The account has what each was promised, and whether it holds when all is over.
 */
import { setTimeout as pause } from 'node:timers/promises';
import { Browser } from '@penstock/testkit';
import type { Random } from '../../support/random.ts';
import { askGraphql, askJson, untilAnswered, type Answered } from './http.ts';

export interface SessionAccount {
  readonly login: string;
  /** Refreshes that were answered. */
  refreshes: number;
  /** `out`: its logout was answered, or that a spent token came again. `unsure`: the answer of a rotation or a logout was lost. */
  state: 'in' | 'out' | 'unsure';
  /** What was not as promised while it lived. */
  readonly broken: string[];
  /** Whether its last tokens work when all is over. */
  works: { readonly refresh: boolean; readonly access: boolean } | undefined;
}

export interface LoginAccount {
  readonly sessions: readonly SessionAccount[];
  /** Logins that came to nothing: their pages or codes went with a process. */
  readonly interrupted: number;
}

interface Session extends SessionAccount {
  refreshToken: string;
  accessToken: string;
}

const LOOK_MS_MAX = 30_000;
const BETWEEN_REFRESHES_MS = 1_500;
const LOGOUT_SHARE = 0.25;
const TWICE_SHARE = 0.2;
const ROTATION_SHARE = 0.3;
/** Of rotations: the session ends with them. */
const REUSE_SHARE = 0.1;
const POLLS_MAX = 30;
const POLL_MS = 700;

export class LoginLoad {
  readonly #url: string;
  readonly #random: Random;
  readonly #stopped: AbortSignal;
  readonly #sessions: Session[] = [];
  #interrupted = 0;
  #people = 0;

  constructor(url: string, random: Random, stopped: AbortSignal) {
    this.#url = url;
    this.#random = random;
    this.#stopped = stopped;
  }

  /** One person: a login, a session in use, perhaps a logout. */
  async live(signal: AbortSignal): Promise<void> {
    this.#people += 1;
    const session = await this.#logIn(`person-${this.#people}`, signal);
    if (session === null) {
      this.#interrupted += 1;
      return;
    }
    this.#sessions.push(session);
    const outAfter = this.#random.chance(LOGOUT_SHARE) ? 1 + this.#random.int(6) : Infinity;
    while (!this.#stopped.aborted && !signal.aborted && session.state === 'in') {
      await pause(this.#random.exponential(BETWEEN_REFRESHES_MS));
      if (session.refreshes >= outAfter) await this.#logOut(session, signal);
      else await this.#refresh(session, signal);
    }
  }

  async account(): Promise<LoginAccount> {
    const signal = AbortSignal.timeout(LOOK_MS_MAX);
    for (const session of this.#sessions) {
      const access = await untilAnswered(() => this.#read(session), this.#random, signal);
      const refreshed = await untilAnswered(
        () => askJson(`${this.#url}/auth/refresh`, { refresh_token: session.refreshToken }),
        this.#random,
        signal,
      );
      session.works = { access: isKnown(access), refresh: refreshed?.status === 200 };
    }
    return { sessions: this.#sessions, interrupted: this.#interrupted };
  }

  /** Null: it came to nothing, and nothing was promised. */
  async #logIn(login: string, signal: AbortSignal): Promise<Session | null> {
    const begun = await untilAnswered(() => askJson(`${this.#url}/auth/device`, {}), this.#random, signal);
    if (begun === null || begun.status !== 200) return null;
    const deviceCode = String(begun.body['device_code']);
    if (!(await approved(String(begun.body['verification_uri']), String(begun.body['user_code']), login))) return null;
    for (let polls = 0; polls < POLLS_MAX && !signal.aborted; polls++) {
      const answer = await askJson(`${this.#url}/auth/device/token`, { device_code: deviceCode });
      if (answer?.body['status'] === 'authorized') {
        const { access_token: accessToken, refresh_token: refreshToken } = answer.body;
        return {
          login,
          refreshes: 0,
          state: 'in',
          broken: [],
          works: undefined,
          accessToken: String(accessToken),
          refreshToken: String(refreshToken),
        };
      }
      // A code that is spent by an answer that was lost: the person begins anew.
      if (answer !== null && answer.status !== 200) return null;
      await pause(Number(answer?.body['interval'] ?? 0) * 1_000 + POLL_MS);
    }
    return null;
  }

  /** Now and then in two places at once, or again, as one does whose answer was lost. */
  async #refresh(session: Session, signal: AbortSignal): Promise<void> {
    if (this.#random.chance(ROTATION_SHARE)) return await this.#rotate(session);
    const { refreshToken } = session;
    const once = (): Promise<Answered | null> =>
      untilAnswered(() => this.#ask({ refresh_token: refreshToken }), this.#random, signal);
    const answers = this.#random.chance(TWICE_SHARE) ? await Promise.all([once(), once()]) : [await once()];
    if (this.#random.chance(TWICE_SHARE)) answers.push(await once());
    const answer = answers.find((one) => one?.status !== 200) ?? answers[0] ?? null;
    if (answer === null) session.state = 'unsure';
    else this.#take(session, answer);
  }

  /** Asked once: a token that is spent and comes again ends the session, which some do here. */
  async #rotate(session: Session): Promise<void> {
    const once = (): Promise<Answered | null> => this.#ask({ refresh_token: session.refreshToken, rotate: true });
    const isTwice = this.#random.chance(REUSE_SHARE);
    const answers = await Promise.all(isTwice ? [once(), once()] : [once()]);
    const [got, ...more] = answers.filter((one) => one?.status === 200);
    if (more.length > 0) session.broken.push(`refresh ${session.refreshes + 1} had ${more.length + 1} successors`);
    if (isTwice && answers.some((one) => one?.status === 401)) {
      if (got != null) this.#take(session, got);
      session.state = 'out';
    } else if (answers.includes(null)) {
      session.state = 'unsure';
    } else {
      for (const answer of answers) if (answer !== null) this.#take(session, answer);
    }
  }

  #ask(body: { readonly refresh_token: string; readonly rotate?: boolean }): Promise<Answered | null> {
    return askJson(`${this.#url}/auth/refresh`, body);
  }

  #take(session: Session, answer: Answered): void {
    if (answer.status === 200) {
      session.refreshes += 1;
      session.accessToken = String(answer.body['access_token']);
      session.refreshToken = String(answer.body['refresh_token'] ?? session.refreshToken);
    } else {
      session.broken.push(`refresh ${session.refreshes + 1} was answered ${describe(answer)}`);
      session.state = 'unsure';
    }
  }

  async #logOut(session: Session, signal: AbortSignal): Promise<void> {
    let tries = 0;
    const answer = await untilAnswered(
      () => {
        tries += 1;
        return askJson(`${this.#url}/auth/logout`, { refresh_token: session.refreshToken });
      },
      this.#random,
      signal,
    );
    // A repeat is told that there is no such session: the first one has done it.
    const isDone = answer?.status === 200 || (answer?.status === 401 && tries > 1);
    session.state = isDone ? 'out' : 'unsure';
    if (answer !== null && !isDone) session.broken.push(`its logout was answered ${describe(answer)}`);
  }

  #read({ accessToken }: Session): Promise<Answered | null> {
    return askGraphql(this.#url, accessToken, '{ runs(limit: 1) { id } }');
  }
}

function isKnown(answer: Answered | null): boolean {
  return answer !== null && answer.status === 200 && answer.body['errors'] === undefined;
}

function describe({ status, body }: Answered): string {
  return `${status} ${JSON.stringify(body)}`;
}

/** As a person with a browser does it. */
async function approved(address: string, userCode: string, login: string): Promise<boolean> {
  try {
    const browser = new Browser();
    const who = await browser.submit(await browser.follow(address), { user_code: userCode });
    const identified = await browser.submit(who, { login });
    const consent = await browser.submit(identified, { decision: 'allow' });
    const done = await browser.submit(consent, { decision: 'allow' });
    return done.answer.text.includes('The device is logged in');
  } catch {
    return false;
  }
}
