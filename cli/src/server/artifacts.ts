/** Files that a run on a server keeps: their list, and each of them. */
import { createHash } from 'node:crypto';
import { ServerRefused, ServerUnreached } from '../process/errors.ts';
import { printableText } from '../output/printable-text.ts';
import { ask, notOurs, refusal } from './graphql.ts';
import { unreachable, type ServerClient } from './http-client.ts';
import { fieldOf } from './json.ts';

export interface KeptOnServer {
  readonly stage: string;
  readonly path: string;
  /** Where the server has it. */
  readonly address: string;
  readonly sizeBytes: number;
  readonly sha256: string;
  readonly expiresAt: string;
}

const QUERY = 'query ($id: String!) { artifacts(run_id: $id) { stage key value sizeBytes sha256 expiresAt } }';
/** Between two pieces of a file. */
const SILENCE_MS_MAX = 60_000;

/** Without the outputs of stages, which the same query lists. */
export async function keptFiles(client: ServerClient, id: string): Promise<KeptOnServer[]> {
  const { data, errors } = await ask(client, QUERY, { id });
  if (errors[0] !== undefined) throw refusal(client, errors[0]);
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
