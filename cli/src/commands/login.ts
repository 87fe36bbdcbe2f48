import type { Command, CommandContext, ParsedArguments } from '../command-line/command.ts';
import { EXIT, ServerAway, ServerFault, ServerRefused, ServerUnreached } from '../process/errors.ts';
import { printableText } from '../output/printable-text.ts';
import { askAuth, messageOf } from '../server/auth-requests.ts';
import { fieldOf } from '../server/json.ts';
import { keepLogin } from '../server/logins.ts';
import { serverAddress, type ServerAddress } from '../server/server-address.ts';
import { LOGIN_ENVIRONMENT, LOGIN_OPTIONS } from '../server/server-options.ts';

export const loginCommand: Command = {
  spec: {
    name: 'login',
    usage: '[options]',
    about:
      'Logs in to a server: shows a code and an address, and waits until the code has been approved there, in whatever browser. The login is kept in the user’s ' +
      'settings, readable by nobody else; `trigger` and `logs` use it where no other token is given.',
    options: LOGIN_OPTIONS,
    positionals: { min: 0, max: 0, missing: '' },
    environment: LOGIN_ENVIRONMENT,
    examples: [
      ['penstock login', 'to the server of this machine'],
      ['penstock login --server https://ci.example.org', 'to another'],
    ],
    exitCodes: [
      [EXIT.success, 'logged in'],
      [EXIT.usage, 'wrong usage'],
      [EXIT.unreached, 'the server was not reached, or is not available now'],
      [EXIT.refused, 'declined, too late, or the server refused'],
    ],
  },
  run: login,
};

interface DeviceCode {
  readonly deviceCode: string;
  readonly userCode: string;
  readonly address: string;
  /** The same with the code in it, where the server has one. */
  readonly completeAddress: string | null;
  readonly intervalSecs: number;
  readonly endsAt: number;
}

/** Whatever a server asks for: faster helps nobody, slower looks like a standstill. */
const INTERVAL_SECS = { min: 1, max: 60 } as const;

async function login(args: ParsedArguments, { env, terminal }: CommandContext): Promise<number> {
  const server = serverAddress(args.text('server'), env);
  const code = await begin(server);
  terminal.note(
    code.completeAddress === null
      ? `Open ${printableText(code.address)}\nand enter the code ${printableText(code.userCode)}`
      : `Open ${printableText(code.completeAddress)}\nand allow the code ${printableText(code.userCode)}`,
  );
  const body = await approved(server, code);
  const [accessToken, refreshToken] = [fieldOf(body, 'access_token'), fieldOf(body, 'refresh_token')];
  if (typeof accessToken !== 'string' || typeof refreshToken !== 'string')
    throw new ServerUnreached(`${server.base} gives no tokens: is it a Penstock server?`);
  const name = String(fieldOf(fieldOf(body, 'user'), 'git_host_login') ?? '');
  const file = await keepLogin(env, server, {
    server: server.base,
    login: name,
    accessToken,
    refreshToken,
    receivedAt: Date.now(),
  });
  terminal.note(`Logged in to ${server.base} as ${printableText(name)}; kept in ${printableText(file)}`);
  return EXIT.success;
}

async function begin(server: ServerAddress): Promise<DeviceCode> {
  const { status, body } = await askAuth(server, '/auth/device', {});
  const [deviceCode, userCode, address] = ['device_code', 'user_code', 'verification_uri'].map((field) =>
    fieldOf(body, field),
  );
  if (status !== 200 || typeof deviceCode !== 'string' || typeof userCode !== 'string' || typeof address !== 'string') {
    throw new ServerRefused(`the server does not begin a login (${status}${messageOf(body)})`);
  }
  const complete = fieldOf(body, 'verification_uri_complete');
  return {
    deviceCode,
    userCode,
    address,
    completeAddress: typeof complete === 'string' ? complete : null,
    intervalSecs: secondsOf(body, 'interval', 5),
    endsAt: performance.now() + secondsOf(body, 'expires_in', 900) * 1000,
  };
}

/** Resolves with the answer that holds the tokens. */
async function approved(server: ServerAddress, { deviceCode, intervalSecs, endsAt }: DeviceCode): Promise<unknown> {
  let waitSecs = intervalSecs;
  for (;;) {
    await new Promise((resolve) =>
      setTimeout(resolve, Math.min(INTERVAL_SECS.max, Math.max(INTERVAL_SECS.min, waitSecs)) * 1000),
    );
    const answer = await askAuth(server, '/auth/device/token', { device_code: deviceCode }).catch((error: unknown) => {
      // The code stays good: whoever allows it now finds this command waiting.
      const isAway = error instanceof ServerAway && !(error instanceof ServerFault);
      if (isAway && performance.now() < endsAt) return undefined;
      throw error;
    });
    if (answer === undefined) continue;
    const { status, body } = answer;
    if (status === 200 && fieldOf(body, 'status') === 'authorized') return body;
    const error = fieldOf(body, 'error');
    if (error === 'access_denied') throw new ServerRefused('the login was declined');
    if (error === 'expired_token' || performance.now() > endsAt)
      throw new ServerRefused(
        "nobody has confirmed the code in time, and it is no longer valid; get a new one with 'penstock login'",
      );
    if (error === 'slow_down') waitSecs = secondsOf(body, 'interval', waitSecs + 5);
    else if (status !== 200 && status !== 429)
      throw new ServerRefused(`the server does not go on with the login (${status}${messageOf(body)})`);
  }
}

function secondsOf(body: unknown, name: string, otherwise: number): number {
  const value = fieldOf(body, name);
  return typeof value === 'number' && value > 0 ? value : otherwise;
}
