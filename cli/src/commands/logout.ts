import type { Command, CommandContext, ParsedArguments } from '../command-line/command.ts';
import { EXIT, ServerRefused } from '../process/errors.ts';
import { printableText } from '../output/printable-text.ts';
import { askAuth, messageOf } from '../server/auth-requests.ts';
import { forgetLogin, readLogin } from '../server/logins.ts';
import { serverAddress } from '../server/server-address.ts';
import { LOGIN_ENVIRONMENT, LOGIN_OPTIONS } from '../server/server-options.ts';

export const logoutCommand: Command = {
  spec: {
    name: 'logout',
    usage: '[options]',
    about:
      'Ends all of your logins on a server, those in browsers and on other machines too, and forgets the one kept here. Personal tokens stay: `penstock token revoke` ends those.',
    options: LOGIN_OPTIONS,
    positionals: { min: 0, max: 0, missing: '' },
    environment: LOGIN_ENVIRONMENT,
    examples: [['penstock logout --server https://ci.example.org', 'everywhere, not only here']],
    exitCodes: [
      [EXIT.success, 'logged out, or there was no login'],
      [EXIT.usage, 'wrong usage'],
      [EXIT.unreached, 'the server was not reached, or is not available now'],
      [EXIT.refused, 'the server refused; the login is kept'],
    ],
  },
  run: logout,
};

async function logout(args: ParsedArguments, { env, terminal }: CommandContext): Promise<number> {
  const server = serverAddress(args.text('server'), env);
  const login = await readLogin(env, server);
  if (login === undefined) {
    terminal.note(`You are not logged in to ${server.base}.`);
    return EXIT.success;
  }
  const { status, body } = await askAuth(server, '/auth/logout', { refresh_token: login.refreshToken });
  // 401: it was over before, and there is nothing left to end.
  if (status !== 200 && status !== 401)
    throw new ServerRefused(`the server did not end the login (${status}${messageOf(body)}); it is kept, try again`);
  await forgetLogin(env, server);
  terminal.note(
    status === 200
      ? `Logged out of ${server.base}: every login of ${printableText(login.login)} has ended.`
      : `The login to ${server.base} had ended already and is forgotten here.`,
  );
  return EXIT.success;
}
