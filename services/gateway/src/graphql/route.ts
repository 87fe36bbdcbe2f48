/** `POST /graphql`: one JSON body, one operation, one JSON answer. Mercurius executes; everything around it is here. */
import type { FastifyInstance, FastifyReply } from 'fastify';
import type { GraphQLError } from 'graphql';
import mercurius from 'mercurius';
import { clientKeyOf } from '@penstock/http';
import type { Caller, Callers } from '@penstock/identity';
import { BadUserInput, ServiceError, Unauthenticated } from '@penstock/errors';
import type { Log } from '@penstock/telemetry/log';
import { COST_SMALL, Documents, REMEMBERED_LENGTH_MAX, REMEMBERED_MAX, TOKENS_MAX } from './documents.ts';
import {
  answerError,
  gatewayAnswer,
  internalError,
  outcomeOf,
  refused,
  withoutSuggestions,
  type GraphqlExecution,
  type GraphqlOutcome,
} from './error-format.ts';
import { encodeAnswer } from './encode-answer.ts';
import { AnswerCache, type MadeAnswer, type Question } from './answer-cache.ts';
import { HeavyOperations } from './heavy-operations.ts';
import * as library from './library.ts';
import { LoopShare } from './loop-share.ts';
import { answerTypeOf, GRAPHQL_ANSWER, type AnswerType } from './media-type.ts';
import { graphqlModules } from './modules.ts';
import { OperationWork } from './operation-work.ts';
import type { GraphqlContext, GraphqlOptions } from './resolvers.ts';

export interface GraphqlRouteOptions extends GraphqlOptions {
  readonly callers: Callers;
  readonly log: Log;
  /** Whether the schema is shown, suggestions for misspelt names included. */
  readonly introspection: boolean;
}

interface GraphqlRequest {
  readonly query: string;
  readonly variables: Record<string, unknown> | undefined;
  readonly operationName: string | undefined;
}

const NAME = /^[_A-Za-z][_0-9A-Za-z]*$/u;

export async function addGraphqlRoute(app: FastifyInstance, options: GraphqlRouteOptions): Promise<void> {
  const documents = new Documents(options.introspection);
  const modules = graphqlModules(options);
  const share = new LoopShare();
  const heavy = new HeavyOperations();
  const cache = new AnswerCache<Answered>({
    changes: (tenants) => options.reads.changes(tenants),
    bytesOf: ({ body }) => (typeof body === 'string' ? 2 * body.length : body.length),
  });
  await app.register(mercurius, {
    schema: modules.sdl,
    resolvers: modules.resolvers as never,
    routes: false,
    jit: 1,
    cache: REMEMBERED_MAX,
    graphql: { parseOptions: { maxTokens: TOKENS_MAX } },
    // The errors are formatted below, when all of an answer is known.
    errorFormatter: (execution) => ({ statusCode: 200, response: execution as never }),
  });

  app.post('/graphql', { config: { tier: 'api' } }, async (request, reply) => {
    const type = answerTypeOf(request.headers.accept);
    const body = requestOf(request.body);
    let caller: Caller;
    try {
      caller = await options.callers.resolve(request.headers.authorization);
    } catch (error) {
      if (error instanceof Unauthenticated)
        options.refusalAudit.note({
          actor: 'unknown',
          action: 'authenticate',
          target: 'POST /graphql',
          outcome: error.code,
          address: request.clientAddress,
        });
      if (error instanceof ServiceError) return send(reply, type, { answer: gatewayAnswer(error), refused: false });
      throw error;
    }
    const problem = documents.check(body.query, body.variables);
    if (problem.kind !== 'good') {
      return send(
        reply,
        type,
        refused([
          problem.kind === 'syntax'
            ? answerError('GRAPHQL_PARSE_FAILED', problem.error.message, problem.error)
            : answerError(problem.kind === 'limit' ? 'BAD_USER_INPUT' : 'GRAPHQL_VALIDATION_FAILED', problem.message),
        ]),
      );
    }
    const clientGone = new AbortController();
    const onClose = (): void => {
      if (!reply.raw.writableFinished) clientGone.abort();
    };
    if (reply.raw.closed) onClose();
    else reply.raw.once('close', onClose);
    const asker = askerOf(caller, request.clientAddress);
    const work = new OperationWork(share, asker);
    const context = { caller, address: request.clientAddress, clientGone: clientGone.signal, work };
    const make = async (): Promise<MadeAnswer<Answered>> => {
      const outcome = shown(await execute(app, body, context, options.log), options.introspection);
      const holds =
        outcome.answer.errors !== undefined || work.isOfAnother ? 'never' : work.isAboutChanges ? 'committed' : 'ended';
      return { answer: await encoded(outcome, type, work), holds };
    };
    const made = (): Promise<MadeAnswer<Answered>> =>
      problem.cost <= COST_SMALL ? make() : heavy.run(asker, make, clientGone.signal);
    try {
      const question = problem.readsRuns ? questionOf(caller, type, body) : null;
      const answer = question === null ? (await made()).answer : await cache.answer(question, made);
      return sendEncoded(reply, type, answer);
    } catch (error) {
      if (clientGone.signal.aborted) return reply;
      if (error instanceof ServiceError) return send(reply, type, { answer: gatewayAnswer(error), refused: false });
      throw error;
    } finally {
      if (work.removesRuns) cache.clear();
      reply.raw.off('close', onClose);
    }
  });
}

/** Null: it is too long to be remembered. */
function questionOf(
  caller: Caller,
  type: AnswerType,
  { query, variables, operationName }: GraphqlRequest,
): Question | null {
  const given = variables === undefined ? '' : JSON.stringify(variables);
  if (query.length + given.length > REMEMBERED_LENGTH_MAX) return null;
  const { kind, readTenants, writeTenant, scopes } = caller;
  const tenants = writeTenant === null ? readTenants : [...new Set([...readTenants, writeTenant])];
  return { key: JSON.stringify([kind, readTenants, writeTenant, scopes, type, operationName, given, query]), tenants };
}

/** Whose operations take turns with those of others: a user's, or all of an address. */
function askerOf(caller: Caller, address: string): string {
  return caller.user === undefined ? `${caller.kind} at ${clientKeyOf(address)}` : caller.user.id;
}

/** Without Mercurius' caches, which hold texts of any length. */
async function executeLong(
  app: FastifyInstance,
  body: GraphqlRequest,
  context: GraphqlContext,
  log: Log,
): Promise<GraphqlOutcome> {
  const { schema } = app.graphql;
  const document = library.parse(body.query, { maxTokens: TOKENS_MAX });
  const problems = library.validate(schema, document);
  if (problems.length > 0)
    return refused(problems.map((each) => answerError('GRAPHQL_VALIDATION_FAILED', each.message, each)));
  const execution = await library.execute({
    schema,
    document,
    contextValue: context,
    ...(body.variables === undefined ? {} : { variableValues: body.variables }),
    ...(body.operationName === undefined ? {} : { operationName: body.operationName }),
  });
  return outcomeOf(execution as GraphqlExecution, log);
}

async function execute(
  app: FastifyInstance,
  body: GraphqlRequest,
  context: GraphqlContext,
  log: Log,
): Promise<GraphqlOutcome> {
  if (body.query.length > REMEMBERED_LENGTH_MAX) return await executeLong(app, body, context, log);
  // Mercurius keeps one compiled query a text, made for the first operation name it met: the name has to be part of it.
  const source = body.operationName === undefined ? body.query : `${body.query}\n#${body.operationName}`;
  try {
    const execution = await app.graphql(source, { ...context }, body.variables ?? {}, body.operationName);
    return outcomeOf(execution as GraphqlExecution, log);
  } catch (error) {
    const errors = (error as { readonly errors?: readonly GraphQLError[] }).errors;
    if ((error as { readonly code?: string }).code === 'MER_ERR_GQL_VALIDATION' && errors !== undefined) {
      // Variables and the choice of an operation are checked once a document is valid: those are the caller's input.
      const code = errors.every(isInputError) ? 'BAD_USER_INPUT' : 'GRAPHQL_VALIDATION_FAILED';
      return refused(errors.map((each) => answerError(code, each.message, each)));
    }
    if (error instanceof ServiceError) return { answer: gatewayAnswer(error), refused: false };
    return { answer: { data: null, errors: [internalError(error, log)] }, refused: false };
  }
}

function isInputError(error: GraphQLError): boolean {
  return /^Variable "\$\w+" (?:got|of)|^Unknown operation named|^Must provide/u.test(error.message);
}

/** Throws `BadUserInput`, answered as HTTP 400, for a body that is no GraphQL request. */
function requestOf(body: unknown): GraphqlRequest {
  if (Array.isArray(body)) throw new BadUserInput('Batches are not accepted: send one operation a request.');
  if (typeof body !== 'object' || body === null)
    throw new BadUserInput('The body must be a JSON object with the field "query".');
  const { query, variables, operationName, extensions } = body as Record<string, unknown>;
  if (typeof query !== 'string' || query.trim() === '')
    throw fieldAtFault('query', 'is missing: it holds the text of the operation');
  if (variables !== undefined && (typeof variables !== 'object' || Array.isArray(variables)))
    throw fieldAtFault('variables', 'must be an object');
  if (operationName !== undefined && operationName !== null && typeof operationName !== 'string')
    throw fieldAtFault('operationName', 'must be a string');
  if (extensions !== undefined && (typeof extensions !== 'object' || Array.isArray(extensions)))
    throw fieldAtFault('extensions', 'must be an object');
  if (typeof operationName === 'string' && operationName !== '' && !NAME.test(operationName))
    throw fieldAtFault('operationName', 'is not a name');
  return {
    query,
    variables: variables === null ? undefined : (variables as Record<string, unknown> | undefined),
    operationName: operationName === null || operationName === '' ? undefined : (operationName as string | undefined),
  };
}

function fieldAtFault(field: string, fault: string): BadUserInput {
  return new BadUserInput(`The field "${field}" ${fault}.`, { field });
}

function shown(outcome: GraphqlOutcome, introspection: boolean): GraphqlOutcome {
  const { answer } = outcome;
  if (introspection || answer.errors === undefined) return outcome;
  return { ...outcome, answer: { ...answer, errors: withoutSuggestions(answer.errors) } };
}

interface Answered {
  readonly status: 200 | 400;
  readonly body: string | Buffer;
}

/**
 * In JSON every GraphQL answer is 200, errors or not. In the newer form what was not executed is 400 and has no `data`, as
 * its specification asks.
 */
async function encoded(
  outcome: GraphqlOutcome,
  type: AnswerType,
  work: Pick<OperationWork, 'pause'>,
): Promise<Answered> {
  const isBadRequest = outcome.refused && type === GRAPHQL_ANSWER;
  const body = isBadRequest ? { errors: outcome.answer.errors } : outcome.answer;
  return { status: isBadRequest ? 400 : 200, body: await encodeAnswer(body, work) };
}

/** Of answers that hold errors only. */
async function send(reply: FastifyReply, type: AnswerType, outcome: GraphqlOutcome): Promise<FastifyReply> {
  return sendEncoded(reply, type, await encoded(outcome, type, { pause: () => Promise.resolve() }));
}

function sendEncoded(reply: FastifyReply, type: AnswerType, { status, body }: Answered): FastifyReply {
  return reply.code(status).header('Content-Type', `${type}; charset=utf-8`).send(body);
}
