/** Files that a run on a server keeps: their list, and each of them. */
import { createHash } from 'node:crypto';
import { ServerRefused, ServerUnreached } from '../process/errors.ts';
import { printableText } from '../output/printable-text.ts';
import type { Terminal } from '../output/terminal.ts';
import { ask, notOurs, refusal, type RunOnServer } from './graphql.ts';
import { unreachable, type ServerClient } from './http-client.ts';
import { fieldOf } from './json.ts';
import { patient } from './watch-run.ts';

export interface KeptOnServer {
  readonly stage: string;
  readonly path: string;
  /** Where the server has it. */
  readonly address: string;
  readonly sizeBytes: number;
  readonly sha256: string;
  readonly expiresAt: string;
}

const FIELDS = 'stage key value sizeBytes sha256 expiresAt';
const OF_RUN = `query ($id: String!) { artifacts(run_id: $id) { ${FIELDS} } }`;
const OF_STAGE = `query ($id: String!, $stage: String!) { artifacts(run_id: $id, stage: $stage) { ${FIELDS} } }`;
/** Between two pieces of a file. */
const SILENCE_MS_MAX = 60_000;

/** Of all stages of the run or of `only`, without the outputs that the same query lists. */
export async function keptFiles(
  client: ServerClient,
  { id, stages }: Pick<RunOnServer, 'id' | 'stages'>,
  only: string | undefined,
  terminal: Pick<Terminal, 'note'>,
): Promise<KeptOnServer[]> {
  const { data, errors } = await ask(client, OF_RUN, { id });
  const [error] = errors;
  if (error === undefined) return filesIn(client, data).filter(({ stage }) => only === undefined || stage === only);
  if (error.code !== 'BAD_USER_INPUT') throw refusal(client, error);
  // There are more than an answer holds. Of a run of thousands of stages the server takes no more requests for a while.
  const files: KeptOnServer[] = [];
  for (const stage of only === undefined ? stages : [only]) {
    const ofStage = patient(() => ask(client, OF_STAGE, { id, stage }), terminal, new AbortController().signal, true);
    const answer = await ofStage();
    if (answer?.errors[0] !== undefined) throw refusal(client, answer.errors[0]);
    files.push(...filesIn(client, answer?.data));
  }
  return files;
}

function filesIn(client: ServerClient, data: unknown): KeptOnServer[] {
  const listed = fieldOf(data, 'artifacts');
  if (!Array.isArray(listed)) return notOurs(client);
  return listed.filter((each) => fieldOf(each, 'sha256') !== null).map((each) => keptFile(each) ?? notOurs(client));
}

function keptFile(value: unknown): KeptOnServer | undefined {
  const fields = ['stage', 'key', 'value', 'sha256', 'expiresAt', 'sizeBytes'];
  const [stage, path, address, sha256, expiresAt, size] = fields.map((name) => {
    const text = fieldOf(value, name);
    return typeof text === 'string' ? text : undefined;
  });
  const sizeBytes = Number(size ?? NaN);
  if (stage === undefined || path === undefined || address === undefined || sha256 === undefined) return undefined;
  if (expiresAt === undefined || !Number.isSafeInteger(sizeBytes) || !address.startsWith('/')) return undefined;
  return { stage, path, address, sizeBytes, sha256, expiresAt };
}

/** Its bytes; who has read to the end has what the list says. */
export async function* contentOf(client: ServerClient, file: KeptOnServer): AsyncGenerator<Uint8Array, void> {
  const impatience = new AbortController();
  const timer = setTimeout(
    () => impatience.abort(new DOMException('it does not answer', 'TimeoutError')),
    SILENCE_MS_MAX,
  );
  const shown = printableText(file.path);
  try {
    const response = await client.fetch(file.address, { signal: impatience.signal });
    if (response.status !== 200) {
      await response.body?.cancel();
      throw new ServerRefused(`the server does not give ${shown} (${response.status}): it may have expired`);
    }
    const hash = createHash('sha256');
    let size = 0;
    for await (const bytes of response.body ?? []) {
      timer.refresh();
      size += bytes.length;
      if (size > file.sizeBytes) break;
      hash.update(bytes);
      yield bytes;
    }
    if (size !== file.sizeBytes || hash.digest('hex') !== file.sha256)
      throw new ServerUnreached(`${shown} did not arrive as the server has it: try again`);
  } catch (error) {
    throw unreachable(client.server, error);
  } finally {
    clearTimeout(timer);
  }
}
