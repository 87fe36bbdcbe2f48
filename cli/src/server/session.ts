/**
 * Makes a token of a login: the kept access token while it lasts, else a new one, which the refresh token gives and which is kept in its place.
 * How long it lasts is counted from when it came, by this machine's clock: the server's may show another time.
 */
import type { CommandContext } from '../command-line/command.ts';
import { FileError, ServerAway, ServerRefused } from '../process/errors.ts';
import { printableText } from '../output/printable-text.ts';
import { askAuth, messageOf } from './auth-requests.ts';
import type { ServerCredentials } from './credentials.ts';
import { fieldOf, parseJson } from './json.ts';
import { keepLogin, type StoredLogin } from './logins.ts';
import type { ServerAddress } from './server-address.ts';

/** A token that ends sooner is renewed first: the request under way has its time. */
const VALID_MS_MIN = 60_000;

export async function sessionOf(
  env: CommandContext['env'],
  server: ServerAddress,
  login: StoredLogin,
): Promise<ServerCredentials> {
  let kept = login;
  const current = async (): Promise<string> => {
    if (leftMs(kept, Date.now()) < VALID_MS_MIN) kept = await renewed(env, server, kept);
    return kept.accessToken;
  };
  return { token: await current(), source: `the login of ${printableText(login.login)}`, current };
}

async function renewed(env: CommandContext['env'], server: ServerAddress, login: StoredLogin): Promise<StoredLogin> {
  const { status, body } = await askAuth(server, '/auth/refresh', { refresh_token: login.refreshToken });
  if (status === 401) {
    throw new ServerRefused(
      `your login to ${server.base} has ended: log in again with 'penstock login --server ${server.base}', or forget it with 'penstock logout --server ${server.base}'`,
    );
  }
  if (status === 429)
    throw new ServerAway(`the server ${server.base} renews no more logins from here for now${messageOf(body)}`);
  const accessToken = fieldOf(body, 'access_token');
  if (status !== 200 || typeof accessToken !== 'string')
    throw new ServerRefused(`the server did not renew the login (${status}${messageOf(body)})`);
  const fresh = { ...login, accessToken, receivedAt: Date.now() };
  // A disk that is full keeps nobody from cancelling a run: the next command renews it again.
  await keepLogin(env, server, fresh).catch((error: unknown) => {
    if (!(error instanceof FileError)) throw error;
  });
  return fresh;
}

/** For how long the token is good, as it says itself; only the server knows whether that is true. */
function leftMs({ accessToken, receivedAt }: StoredLogin, now: number): number {
  const claims = parseJson(Buffer.from(accessToken.split('.')[1] ?? '', 'base64url').toString('utf8'));
  const [from, until] = [fieldOf(claims, 'iat'), fieldOf(claims, 'exp')];
  if (typeof until !== 'number') return 0;
  // An earlier release has kept no time.
  if (typeof from !== 'number' || receivedAt === undefined) return until * 1000 - now;
  // Less than nothing: the clock was set back since, and the age is not known.
  const age = now - receivedAt;
  return age < 0 ? 0 : (until - from) * 1000 - age;
}
