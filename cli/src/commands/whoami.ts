import type { Command, CommandContext, ParsedArguments } from '../command-line/command.ts';
import { EXIT, ServerRefused } from '../process/errors.ts';
import { printableText } from '../output/printable-text.ts';
import { askAuth, messageOf } from '../server/auth-requests.ts';
import { readLoginCredentials } from '../server/read-credentials.ts';
import { fieldOf } from '../server/json.ts';
import { serverAddress } from '../server/server-address.ts';
import { LOGIN_ENVIRONMENT, LOGIN_OPTIONS } from '../server/server-options.ts';

export const whoamiCommand: Command = {
  spec: {
    name: 'whoami',
    usage: '[options]',
    about:
      'Says who you are on a server, by the login that is kept here. The server is asked, so it also says whether that login still holds.',
    options: { json: { type: 'boolean', text: 'As the server tells it, on one line.' }, ...LOGIN_OPTIONS },
    positionals: { min: 0, max: 0, missing: '' },
    environment: LOGIN_ENVIRONMENT,
    examples: [
      ['penstock whoami', 'login, email, tier'],
      ['penstock whoami --json | jq -r .id', 'your id'],
    ],
    exitCodes: [
      [EXIT.success, 'shown'],
      [EXIT.usage, 'wrong usage'],
      [EXIT.unreached, 'the server was not reached, or is not available now'],
      [EXIT.refused, 'not logged in, or no longer'],
    ],
  },
  run: whoami,
};

async function whoami(args: ParsedArguments, context: CommandContext): Promise<number> {
  const server = serverAddress(args.text('server'), context.env);
  const { token } = await readLoginCredentials(context, server);
  const { status, body } = await askAuth(server, '/auth/me', undefined, token);
  if (status === 401)
    throw new ServerRefused(
      `your login to ${server.base} has ended: log in again with 'penstock login --server ${server.base}'`,
    );
  if (status !== 200) throw new ServerRefused(`the server does not say who you are (${status}${messageOf(body)})`);
  if (args.flag('json')) {
    context.terminal.print(`${JSON.stringify(body)}\n`);
    return EXIT.success;
  }
  const text = (name: string): string => printableText(String(fieldOf(body, name) ?? ''));
  const admin = fieldOf(body, 'is_admin') === true ? ', admin' : '';
  context.terminal.print(
    `${text('git_host_login')} <${text('email')}>, tier ${text('tier')}${admin}, on ${server.base}\n`,
  );
  return EXIT.success;
}
