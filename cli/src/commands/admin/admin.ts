/** `penstock admin`: what operators ask of a server and do to it. */
import { actionOf } from '../../command-line/actions.ts';
import type { Command, CommandContext, ParsedArguments } from '../../command-line/command.ts';
import { EXIT, UsageError } from '../../process/errors.ts';
import { serverClient } from '../../server/http-client.ts';
import type { NamedAction } from '../../server/named-actions.ts';
import { readAdminCredentials } from '../../server/read-credentials.ts';
import { serverAddress } from '../../server/server-address.ts';
import { SERVER_ENVIRONMENT, SERVER_EXIT_CODES, SERVER_OPTIONS } from '../../server/server-options.ts';
import { audit } from './audit.ts';
import { deadLetters, redrive } from './dead-letters.ts';
import { backup, restore } from './backups.ts';
import type { LocalAction } from './local-action.ts';
import { rotateKey } from './keys.ts';
import { drain, pause, resume } from './pauses.ts';
import { purge } from './purge.ts';
import { deleteUser, suspend, suspended, unsuspend } from './people.ts';
import { runners, status } from './status.ts';

interface ActionSpec {
  /** What the third word is; null: there is none. */
  readonly names: string | null;
  /** Beside those of every action. */
  readonly options: readonly string[];
  readonly act: NamedAction | { readonly here: LocalAction };
}

const ACTIONS: Readonly<Record<string, ActionSpec>> = {
  status: { names: null, options: [], act: status },
  runners: { names: null, options: [], act: runners },
  pause: { names: null, options: ['key', 'label', 'reason'], act: pause },
  resume: { names: null, options: ['key', 'label'], act: resume },
  drain: { names: 'the name of a runner', options: ['reason', 'undo'], act: drain },
  audit: { names: null, options: ['since', 'limit'], act: audit },
  suspend: { names: 'the login or the id of a user', options: [], act: suspend },
  unsuspend: { names: 'the login or the id of a user', options: [], act: unsuspend },
  suspended: { names: null, options: [], act: suspended },
  'delete-user': { names: 'the login or the id of a user', options: [], act: deleteUser },
  purge: { names: null, options: ['tenant', 'cancel', 'yes'], act: purge },
  'dead-letters': { names: null, options: [], act: deadLetters },
  'dead-letters redrive': { names: 'the id of a dead letter', options: [], act: redrive },
  'rotate-key': { names: null, options: [], act: rotateKey },
  backup: { names: 'a folder that is empty or not there yet', options: [], act: backup },
  restore: { names: 'the folder of a backup', options: [], act: { here: restore } },
};

const OF_SOME_ACTIONS = [...new Set(Object.values(ACTIONS).flatMap(({ options }) => options))];

export const adminCommand: Command = {
  spec: {
    name: 'admin',
    usage:
      'status | runners | pause | resume | drain <runner> | audit | dead-letters [redrive <id>] | suspend <login> | unsuspend <login> | suspended | delete-user <login> | purge --tenant <tenant> | rotate-key | backup <folder> | restore <folder>',
    about:
      'For who operates a server. `status` shows schedulers, partitions, runners, what waits and what is paused; `runners` the runners alone. `pause` hands no stage to a ' +
      'runner any more, none at all or none of a key or for a label: what runs goes on, what waits stays, also over restarts, until `resume`. `drain` hands a runner nothing ' +
      'but stages of runs that it has begun. `audit` shows who did what, the newest first. `dead-letters` shows deliveries of outgoing webhooks that were given up, and sends one of them again. `suspend` shuts a user out, whose tokens and sessions count no more until `unsuspend`; `suspended` shows who is. `delete-user` deletes a user for good with secrets, tokens, connected repositories and webhooks, and counts them; runs stay. `purge` deletes everything of a tenant for good, with all of its runs, and counts it. `rotate-key` has secrets sealed anew under the first key of SERVICE_MASTER_KEY, waits for it, and says which of the other keys may be taken off. `backup` copies everything of `penstock serve` to a folder of its machine ' +
      'while it runs; `restore` makes a new data folder from that, on the machine where it is called and without a server.',
    options: {
      key: {
        type: 'string',
        value: 'KEY',
        text: 'Of pause and resume: only the stages of this key, as status shows it.',
      },
      label: { type: 'string', value: 'LABEL', text: 'Of pause and resume: only stages that ask for this label.' },
      reason: {
        type: 'string',
        value: 'TEXT',
        text: 'Of pause and drain: why; it is shown to everybody whose stages wait for it.',
      },
      undo: { type: 'boolean', text: 'Of drain: the runner is given everything again.' },
      tenant: {
        type: 'string',
        value: 'TENANT',
        text: "Of purge: whose; user/ and a user's id, as `audit` and `status` name users, or service, which is all that the API key and repositories that nobody has connected have.",
      },
      cancel: {
        type: 'boolean',
        text: 'Of purge: runs that go on are cancelled first; without, nothing is deleted while there are such.',
      },
      yes: { type: 'boolean', text: 'Of purge: it is meant; without, it does nothing.' },
      since: {
        type: 'string',
        value: 'TIME',
        text: 'Of audit: from then on; an ISO time, or as 90m, 24h, 7d before now.',
      },
      limit: { type: 'string', value: 'N', text: 'Of audit: so many entries; 50 where it is absent, at most 1000.' },
      json: { type: 'boolean', text: 'The answer as JSON, on one line.' },
      ...SERVER_OPTIONS,
    },
    positionals: {
      min: 1,
      max: 3,
      missing: 'administer what? penstock admin status, penstock admin pause, penstock admin drain <runner>, …',
    },
    environment: [
      ['SERVICE_ADMIN_KEY', 'the administration key of the server; before the API key and a login'],
      ...SERVER_ENVIRONMENT,
    ],
    examples: [
      ['penstock admin status', 'how everything stands'],
      ["penstock admin pause --reason 'database upgrade until 5'", 'nothing begins any more; what runs goes on'],
      ['penstock admin resume', 'and it goes on'],
      ['penstock admin pause --label gpu', 'nothing that asks for the label gpu'],
      ['penstock admin drain worker-3', 'before that machine is taken away'],
      ['penstock admin audit --since 24h', 'who did what since yesterday'],
      ['penstock admin suspend mallory', 'no login, session or token of theirs counts any more'],
      ['penstock admin purge --tenant user/7f3a… --cancel --yes', 'nothing of that user is left, runs included'],
      [
        'penstock admin backup /mnt/backup/monday',
        'all runs that were accepted before it began, logs, objects and keys',
      ],
      [
        'penstock admin restore /mnt/backup/monday --data-dir /var/lib/penstock',
        'then: penstock serve --data-dir /var/lib/penstock',
      ],
    ],
    exitCodes: [[EXIT.success, 'done'], [EXIT.usage, 'wrong usage'], ...SERVER_EXIT_CODES],
  },
  run: admin,
};

async function admin(args: ParsedArguments, context: CommandContext): Promise<number> {
  const [word, name] = wordsOf(args.positionals);
  const action = actionOf('admin', word, ACTIONS);
  if ((action.names === null) !== (name === undefined))
    throw new UsageError(
      action.names === null ? `'admin ${word}' takes no argument` : `'admin ${word}' needs ${action.names}`,
      'admin',
    );
  const strange = OF_SOME_ACTIONS.find(
    (option) => !action.options.includes(option) && (args.text(option) !== undefined || args.flag(option)),
  );
  if (strange !== undefined) throw new UsageError(`'admin ${word}' takes no --${strange}`, 'admin');
  if (typeof action.act === 'object') {
    await action.act.here(name ?? '', args, context);
    return EXIT.success;
  }
  const server = serverAddress(args.text('server'), context.env);
  await action.act(serverClient(server, await readAdminCredentials(args, context, server)), name ?? '', args, context);
  return EXIT.success;
}

/** `dead-letters redrive <id>` is the one action of two words; a word too many is refused as an argument is. */
function wordsOf([first = '', second, third]: readonly string[]): readonly [word: string, name: string | undefined] {
  if (first === 'dead-letters' && second === 'redrive') return [`${first} ${second}`, third];
  if (third !== undefined) throw new UsageError(`'admin ${first}' takes one argument at most`, 'admin');
  return [first, second];
}
