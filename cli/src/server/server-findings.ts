/** What a server lacks, as far as this caller is told: whether it answers, whom it takes the caller for, and what runs its stages. */
import type { Finding } from '../output/finding.ts';
import { printableText } from '../output/printable-text.ts';
import { EXIT, ServerError, type CommandError } from '../process/errors.ts';
import { version } from '../process/version.ts';
import { ask, notOurs, refusal } from './graphql.ts';
import type { ServerClient } from './http-client.ts';
import { fieldOf } from './json.ts';

export interface ServerFindings {
  readonly findings: readonly Finding[];
  /** As of any command that asked it the same. */
  readonly exitCode: number;
}

/** Open to everybody, but for a token that is not valid. */
const KNOWN_QUERY = 'query { version }';
/** For administrators. */
const STATUS_QUERY = 'query { adminStatus { schedulers { answers trouble } runners { isDrained } } }';

export async function serverFindings(client: ServerClient): Promise<ServerFindings> {
  const findings: Finding[] = [];
  try {
    const known = await ask(client, KNOWN_QUERY, {});
    const [problem] = known.errors;
    if (problem !== undefined)
      return ofError(refusal(client, problem), problem.code === 'UNAUTHENTICATED' ? 'token' : 'server');
    const said = fieldOf(known.data, 'version');
    findings.push(answers(client, typeof said === 'string' ? said : notOurs(client)), token(client));
    const status = await ask(client, STATUS_QUERY, {});
    const [refused] = status.errors;
    if (refused === undefined) findings.push(...installation(fieldOf(status.data, 'adminStatus')));
    // To others it is FORBIDDEN, and a server of before knows no such question.
    else if (refused.code === 'UNAVAILABLE')
      findings.push({
        name: 'schedulers',
        ok: false,
        found: printableText(refused.message),
        remedy: 'no run goes on without: look at their logs, and at the broker',
      });
    return { findings, exitCode: EXIT.success };
  } catch (error) {
    if (!(error instanceof ServerError)) throw error;
    return ofError(error, 'server', findings);
  }
}

/** Behind what was found before it. */
export function ofError(error: CommandError, name: string, before: readonly Finding[] = []): ServerFindings {
  return { findings: [...before, { name, ok: false, found: error.message }], exitCode: error.exitCode };
}

function answers({ server }: ServerClient, said: string): Finding {
  const theirs = printableText(said);
  const ours = version();
  return theirs === ours
    ? { name: 'server', ok: true, found: `Penstock ${theirs} answers at ${server.base}` }
    : {
        name: 'server',
        ok: false,
        found: `Penstock ${theirs} answers at ${server.base}, and this command is of ${ours}`,
        remedy: 'use the command of the same version: one of another may not know what the other says',
      };
}

function token({ server, credentials }: ServerClient): Finding {
  return credentials.token === undefined
    ? {
        name: 'token',
        ok: false,
        found: 'there is no token for it: only what is public can be read',
        remedy: `set SERVICE_API_KEY, name a file with --token-file, or log in: penstock login --server ${server.base}`,
      }
    : { name: 'token', ok: true, found: `it accepts that of ${printableText(credentials.source)}` };
}

/** Told to administrators only. */
function installation(status: unknown): Finding[] {
  const runners = listOf(fieldOf(status, 'runners'));
  const free = runners.filter((runner) => fieldOf(runner, 'isDrained') !== true).length;
  const schedulers = listOf(fieldOf(status, 'schedulers'));
  const troubles = schedulers.flatMap((each) => {
    const trouble = fieldOf(each, 'trouble');
    if (fieldOf(each, 'answers') === true && typeof trouble !== 'string') return [];
    return [typeof trouble === 'string' ? printableText(trouble) : 'one does not answer'];
  });
  const look = 'penstock admin status says more';
  return [
    schedulers.length > 0 && troubles.length === 0
      ? { name: 'schedulers', ok: true, found: `${schedulers.length} of them, and all answer` }
      : {
          name: 'schedulers',
          ok: false,
          found: schedulers.length === 0 ? 'there is none: no run goes on' : troubles.join('; '),
          remedy: look,
        },
    free > 0
      ? { name: 'runners', ok: true, found: `${free} of them take stages` }
      : {
          name: 'runners',
          ok: false,
          found: runners.length === 0 ? 'none is connected: stages wait' : 'all of them are drained: stages wait',
          remedy: runners.length === 0 ? 'start one: penstock help runner' : look,
        },
  ];
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}
