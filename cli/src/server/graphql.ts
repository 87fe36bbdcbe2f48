/** Sends GraphQL operations to a server: what every answer has in common, and the operations on runs. */
import type { LockEntry } from '@penstock/extension';
import type { Diagnostic } from '@penstock/pipeline';
import { ServerRefused, ServerUnreached, type ServerError } from '../process/errors.ts';
import { printableText } from '../output/printable-text.ts';
import { fieldOf, parseJson } from './json.ts';
import { ANSWER_MS_MAX, lacksAnswer, readBody, refused, unreachable, type ServerClient } from './http-client.ts';

export interface RunOnServer {
  readonly id: string;
  readonly status: string;
  readonly stages: readonly string[];
}

/** What stands before the server has not had its answer: whether it was done is not known. */
class AnswerLost extends ServerUnreached {}

/** The caller, or its address, has asked for too much in this minute. */
export class TooManyRequests extends ServerRefused {}

/** The file has problems that only the server saw: it is of another version. */
export class FileRefusedByServer extends ServerRefused {
  readonly diagnostics: readonly Diagnostic[];

  constructor(message: string, diagnostics: readonly Diagnostic[]) {
    super(message);
    this.diagnostics = diagnostics;
  }
}

const RUN_FIELDS = 'id status stages { name }';
/** How often a trigger is repeated with the id that the server gave for that (UNAVAILABLE). */
const REPEATS_MAX = 5;
const REPEAT_MS_MAX = 15_000;

export interface TriggerInput {
  readonly yaml: string;
  /** Which versions of extensions it is to use. */
  readonly lock: readonly LockEntry[];
  /** Of the inputs of the pipeline, those that are given. */
  readonly inputs: ReadonlyMap<string, string>;
}

interface Argument {
  readonly name: string;
  readonly type: string;
  readonly value: unknown;
}

/** Resolves once the run is durable. */
export async function triggerPipeline(
  client: ServerClient,
  { yaml, lock, inputs }: TriggerInput,
  note: (line: string) => void,
): Promise<RunOnServer> {
  // A server that does not know them takes a file without.
  const locked = lock.length === 0 ? [] : [{ name: 'lock', type: '[LockEntryInput!]', value: lock }];
  const given = [{ name: 'yaml', type: 'String!', value: yaml }, ...locked, ...inputsArgument(inputs)];
  return await newRun(client, 'triggerPipeline', given, note);
}

export interface DispatchInput {
  readonly provider: string;
  readonly repository: string;
  readonly ref: string;
  readonly inputs: ReadonlyMap<string, string>;
}

/** Resolves once the run is durable. */
export async function dispatchPipeline(
  client: ServerClient,
  { provider, repository, ref, inputs }: DispatchInput,
  note: (line: string) => void,
): Promise<RunOnServer> {
  const named = Object.entries({ provider, repository, ref }).map(([name, value]) => ({
    name,
    type: 'String!',
    value,
  }));
  return await newRun(client, 'dispatchPipeline', [...named, ...inputsArgument(inputs)], note);
}

export interface RerunInput {
  /** Of the run that runs again. */
  readonly id: string;
  readonly from: readonly string[];
  readonly onlyFailed: boolean;
  readonly inputs: ReadonlyMap<string, string>;
  /** In place of its own file. */
  readonly yaml: string | undefined;
}

/** Resolves once the run is durable. */
export async function rerunPipeline(
  client: ServerClient,
  { id, from, onlyFailed, inputs, yaml }: RerunInput,
  note: (line: string) => void,
): Promise<RunOnServer> {
  const given = [
    { name: 'id', type: 'String!', value: id },
    ...(from.length === 0 ? [] : [{ name: 'from', type: '[String!]', value: from }]),
    ...(onlyFailed ? [{ name: 'onlyFailed', type: 'Boolean', value: true }] : []),
    ...(yaml === undefined ? [] : [{ name: 'yaml', type: 'String', value: yaml }]),
    ...inputsArgument(inputs),
  ];
  return await newRun(client, 'rerunPipeline', given, note);
}

function inputsArgument(inputs: ReadonlyMap<string, string>): Argument[] {
  const value = [...inputs].map(([key, each]) => ({ key, value: each }));
  return value.length === 0 ? [] : [{ name: 'inputs', type: '[KeyValueInput!]', value }];
}

async function newRun(
  client: ServerClient,
  mutation: 'triggerPipeline' | 'dispatchPipeline' | 'rerunPipeline',
  given: readonly Argument[],
  note: (line: string) => void,
): Promise<RunOnServer> {
  const declared = given.map(({ name, type }) => `$${name}: ${type}`).join(', ');
  const passed = given.map(({ name }) => `${name}: $${name}`).join(', ');
  const query = `mutation (${declared}, $runId: String) { ${mutation}(${passed}, waitSeconds: 0, runId: $runId) { run { ${RUN_FIELDS} } } }`;
  const values = Object.fromEntries(given.map(({ name, value }) => [name, value]));
  let runId: string | undefined;
  for (let repeats = 0; ; repeats += 1) {
    const answer = await ask(client, query, { ...values, ...(runId === undefined ? {} : { runId }) }).catch(
      (failure: unknown) => {
        if (!(failure instanceof AnswerLost) && !lacksAnswer(failure)) throw failure;
        throw new ServerUnreached(
          `the server ${client.server.base} took the request and its answer did not come: the run may have begun. See with 'penstock runs' before you ask again, which begins another`,
          { cause: failure },
        );
      },
    );
    const error = answer.errors[0];
    if (error === undefined) return runOf(fieldOf(fieldOf(answer.data, mutation), 'run')) ?? notOurs(client);
    if (error.code !== 'UNAVAILABLE' || error.runId === undefined || repeats >= REPEATS_MAX)
      throw refusal(client, error);
    runId = error.runId;
    const waitMs = Math.min(REPEAT_MS_MAX, Math.max(1_000, (error.retryAfter ?? 1) * 1000));
    note(
      `penstock: the server is not available yet (${printableText(error.message)}); trying again with the same run id.`,
    );
    await new Promise((resolve) => setTimeout(resolve, waitMs));
  }
}

const ENDED: ReadonlySet<string> = new Set(['SUCCESS', 'FAILED', 'SKIPPED', 'CANCELLED']);

/** Of a status that this command does not know it is not said. */
export function hasEnded(status: string): boolean {
  return ENDED.has(status);
}

/** Undefined: there is no such run for this caller. */
export async function findRun(client: ServerClient, id: string): Promise<RunOnServer | undefined> {
  const answer = await ask(client, `query ($id: String!) { run(id: $id) { ${RUN_FIELDS} } }`, { id });
  const error = answer.errors[0];
  if (error !== undefined) throw refusal(client, error);
  return runOf(fieldOf(answer.data, 'run'));
}

export interface RefusedOperation {
  readonly message: string;
  readonly code: string;
  readonly runId: string | undefined;
  readonly retryAfter: number | undefined;
  readonly diagnostics: readonly Diagnostic[];
  /** All that the server says beside the message. */
  readonly extensions: unknown;
}

/** One operation; what the server refuses comes as `errors`, what no server of ours would say is thrown. */
export async function ask(
  client: ServerClient,
  query: string,
  variables: Record<string, unknown>,
): Promise<{ data: unknown; errors: readonly RefusedOperation[] }> {
  let status: number;
  let text: string;
  try {
    const response = await client.fetch('/graphql', {
      method: 'POST',
      headers: { 'content-type': 'application/json', accept: 'application/json' },
      body: JSON.stringify({ query, variables }),
      signal: AbortSignal.timeout(ANSWER_MS_MAX),
    });
    status = response.status;
    text = await readBody(response);
  } catch (error) {
    throw unreachable(client.server, error);
  }
  if (status === 401) throw refused(client);
  if (status === 429)
    throw new TooManyRequests(
      `the server ${client.server.base} takes no more requests from here for now: wait a minute and try again`,
    );
  const body = parseJson(text);
  const errors = fieldOf(body, 'errors');
  if (typeof body !== 'object' || body === null || (!('data' in body) && !Array.isArray(errors))) {
    const message = fieldOf(body, 'message');
    const Unreached = status === 502 || status === 504 ? AnswerLost : ServerUnreached;
    if (typeof message === 'string') {
      const Failure = status >= 500 ? Unreached : ServerRefused;
      throw new Failure(`the server answers ${status}: ${printableText(message)}`);
    }
    throw new Unreached(foreignAnswer(client.server.base, status));
  }
  return { data: fieldOf(body, 'data'), errors: Array.isArray(errors) ? errors.map(errorOf) : [] };
}

/** An ingress says itself that what is behind it does not answer; anything else is somebody else's server. */
export function foreignAnswer(base: string, status: number): string {
  return [502, 503, 504].includes(status)
    ? `${base} answers ${status}: what stands before the server does not reach it now; try again in a moment`
    : `${base} answers ${status} and not as a Penstock server does: check the address`;
}

function errorOf(error: unknown): RefusedOperation {
  const extensions = fieldOf(error, 'extensions');
  const [message, code] = [fieldOf(error, 'message'), fieldOf(extensions, 'code')];
  const runId = fieldOf(extensions, 'runId');
  const retryAfter = fieldOf(extensions, 'retryAfter');
  const diagnostics = fieldOf(extensions, 'diagnostics');
  return {
    message: typeof message === 'string' ? message : 'no message',
    code: typeof code === 'string' ? code : 'UNKNOWN',
    runId: typeof runId === 'string' ? runId : undefined,
    retryAfter: typeof retryAfter === 'number' ? retryAfter : undefined,
    diagnostics: Array.isArray(diagnostics) ? diagnostics.filter(isDiagnostic).map(withPlace) : [],
    extensions,
  };
}

export function refusal(client: ServerClient, error: RefusedOperation): ServerError {
  if (error.code === 'UNAUTHENTICATED') return refused(client);
  if (error.diagnostics.length > 0) return new FileRefusedByServer(error.message, error.diagnostics);
  if (error.code === 'UNAVAILABLE')
    return new ServerUnreached(
      `the server is not available now: ${printableText(error.message)} Try again in a moment.`,
    );
  return new ServerRefused(`the server refused: ${printableText(error.message)} (${printableText(error.code)})`);
}

/** What an operation's field was answered. @throws ServerRefused, ServerUnreached */
export async function fieldAnswered(
  client: ServerClient,
  query: string,
  variables: Record<string, unknown>,
  field: string,
): Promise<unknown> {
  const {
    data,
    errors: [error],
  } = await ask(client, query, variables);
  if (error !== undefined) throw refusal(client, error);
  const answer = fieldOf(data, field);
  // Nothing was done then, whatever was asked for.
  return answer === undefined ? notOurs(client) : answer;
}

export function notOurs({ server }: ServerClient): never {
  throw new ServerUnreached(`${server.base} answers not as a Penstock server does: check the address`);
}

function runOf(run: unknown): RunOnServer | undefined {
  const id = fieldOf(run, 'id');
  const stages = fieldOf(run, 'stages');
  // It is shown, and to be copied into a shell.
  if (typeof id !== 'string' || !/^[\w-]+$/.test(id)) return undefined;
  const names = Array.isArray(stages)
    ? stages.map((stage) => fieldOf(stage, 'name')).filter((name) => typeof name === 'string')
    : [];
  return { id, status: String(fieldOf(run, 'status')), stages: names };
}

/** Earlier servers say where a problem begins and not how far it goes; without a length it would be shown without its line. */
function withPlace(diagnostic: Diagnostic): Diagnostic {
  return diagnostic.length === undefined && diagnostic.path !== '' ? { ...diagnostic, length: 1 } : diagnostic;
}

function isDiagnostic(value: unknown): value is Diagnostic {
  return (
    typeof fieldOf(value, 'line') === 'number' &&
    typeof fieldOf(value, 'column') === 'number' &&
    typeof fieldOf(value, 'message') === 'string'
  );
}
