/**
 * The reference of docs/api.md, made from the code: GraphQL from the schema's texts, routes from where they are registered, codes
 * from their registry. What is not understood, or has no meaning written here, is an error, so that nothing is left out unnoticed.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import {
  buildSchema,
  getNamedType,
  isEnumType,
  isInputObjectType,
  isObjectType,
  type GraphQLField,
  type GraphQLInputField,
  type GraphQLNamedType,
  type GraphQLObjectType,
  type GraphQLOutputType,
} from 'graphql';
import { ERROR_CODES, type ErrorCode } from '@penstock/errors';

const services = fileURLToPath(new URL('../../', import.meta.url));
const WITH_ROUTES = ['gateway', 'dashboard', 'auth', 'webhook-ingest', 'registry'];

/** The page with its reference made anew; it stands between two comments. */
export function withReference(page: string): string {
  const [before, rest] = page.split('<!-- reference -->');
  const [, after] = (rest ?? '').split('<!-- /reference -->');
  if (before === undefined || after === undefined) throw new RangeError('docs/api.md has no place for the reference');
  const parts = [graphqlReference(schemaText()), routesReference(registeredRoutes()), codesReference()];
  return `${before}<!-- reference -->\n\n${parts.join('\n\n')}\n\n<!-- /reference -->${after}`;
}

// --- GraphQL ---------------------------------------------------------------------------------------------------------

export function schemaText(): string {
  return sourcesOf('gateway')
    .flatMap((source) => [...source.matchAll(/\/\* GraphQL \*\/ `([^`]+)`/g)])
    .map(([, text = '']) => text)
    .toSorted(
      (a, b) => Number(b.includes('type Query {\n    "\'ok\'"')) - Number(a.includes('type Query {\n    "\'ok\'"')),
    )
    .join('\n');
}

export function graphqlReference(sdl: string): string {
  const schema = buildSchema(sdl);
  const operations = [schema.getQueryType(), schema.getMutationType()].filter((type) => type != null);
  const others = Object.values(schema.getTypeMap()).filter(
    (type) =>
      !type.name.startsWith('__') &&
      !operations.includes(type as GraphQLObjectType) &&
      (isObjectType(type) || isEnumType(type) || isInputObjectType(type)),
  );
  return [
    '## GraphQL: queries',
    operationTable(schema.getQueryType()),
    '## GraphQL: mutations',
    operationTable(schema.getMutationType()),
    '## GraphQL: types',
    ...others.map(typeSection),
  ].join('\n\n');
}

function operationTable(type: GraphQLObjectType | null | undefined): string {
  const rows = Object.values(type?.getFields() ?? {}).map((field) => {
    if (!hasText(field.description)) throw new RangeError(`the operation '${field.name}' has no description`);
    return `| \`${field.name}\` | ${argumentsOf(field)} | ${typeLink(String(field.type), getNamedType(field.type))} | ${cell(field.description)} |`;
  });
  return ['| name | arguments | answer | meaning |', '|---|---|---|---|', ...rows].join('\n');
}

function argumentsOf(field: GraphQLField<unknown, unknown>): string {
  return field.args.map(({ name, type }) => `\`${name}: ${String(type)}\``).join(', ') || 'none';
}

function typeSection(type: GraphQLNamedType): string {
  const about = hasText(type.description) ? [cell(type.description)] : [];
  if (isEnumType(type)) {
    const values = type.getValues().map(({ name }) => `\`${name}\``);
    return [`### ${type.name}`, ...about, `One of ${values.join(', ')}.`].join('\n\n');
  }
  if (!isObjectType(type) && !isInputObjectType(type)) throw new RangeError(`not understood: the type '${type.name}'`);
  // Fields of outputs and of inputs have types of their own.
  const fields: readonly (GraphQLField<unknown, unknown> | GraphQLInputField)[] = Object.values(type.getFields());
  const rows = fields.map((field) => {
    const given = 'args' in field && field.args.length > 0 ? ` (${argumentsOf(field)})` : '';
    return `| \`${field.name}\`${given} | ${typeLink(String(field.type), getNamedType(field.type as GraphQLOutputType))} | ${cell(field.description ?? '')} |`;
  });
  return [`### ${type.name}`, ...about, ['| field | type | meaning |', '|---|---|---|', ...rows].join('\n')].join(
    '\n\n',
  );
}

function typeLink(text: string, named: GraphQLNamedType): string {
  return isObjectType(named) || isEnumType(named) || isInputObjectType(named)
    ? `[\`${text}\`](#${named.name.toLowerCase()})`
    : `\`${text}\``;
}

// --- Routes ----------------------------------------------------------------------------------------------------------

export interface Route {
  readonly methods: string;
  readonly path: string;
  readonly tier: string;
  readonly service: string;
}

/** What each is for; pages that only a browser is sent to are left to docs/authentication.md. */
const ROUTES: Readonly<Record<string, string>> = {
  'GET /': 'Name, version and the paths of the API.',
  'GET /health': '`ok`, as long as the process answers.',
  'GET /ready':
    '200 where broker and store can be reached, 503 where not, with what is missing, and while it is stopping.',
  'GET /metrics':
    'Of a server that is all services in one: its figures, as Prometheus reads them ([operating.md](operating.md#watch-it)); with the API key.',
  'POST /graphql':
    '`{query, variables, operationName}`: everything of the reference above. At most 1 MiB, 100 levels, and 50,000 brackets, commas and colons outside its strings.',
  'GET /graphql/playground': 'An IDE for GraphQL, with `--playground`.',
  'GET /graphql/playground/assets/:name': 'Its scripts and styles.',
  'GET /dashboard': 'Leads on to `/dashboard/`.',
  'GET /dashboard/*': 'The [dashboard](dashboard.md): its page, at every address below it.',
  'GET /dashboard/assets/:name': 'Its scripts and styles.',
  'GET /runs/:id': "Leads on to the run's page of the dashboard: what commit statuses link to.",
  'GET, HEAD /runs/events':
    'Which runs have changed, of those that the caller may see, as server-sent events: [events.md](events.md#changes-of-runs). Token in the header or as `?token=`, `Last-Event-ID` continues.',
  'GET, HEAD /pipeline/:id/logs':
    'What happens to a run, as server-sent events: [events.md](events.md). Token in the header or as `?token=`, `Last-Event-ID` continues.',
  'GET, HEAD /pipeline/:id/artifacts/:stage/*':
    'A file that the stage keeps, with `ETag` and ranges. Token in the header, or a stream ticket of the run as `?token=`.',
  'GET, HEAD /pipeline/:id/artifacts/:stage': 'All that the stage keeps, as a `tar.gz`.',
  'POST /auth/device':
    'Begins the login of a device: `{device_code, user_code, verification_uri, expires_in, interval}`.',
  'POST /auth/device/token': '`{device_code}`: `authorized` with the tokens, `pending`, `expired` or `denied`.',
  'GET /auth/device/verify': 'The page where the code is entered.',
  'POST /auth/device/verify': 'Its form.',
  'GET /auth/device/consent': 'The page where the device is allowed.',
  'POST /auth/device/consent': 'Its form.',
  'GET /auth/web/login': 'Leads a browser to the identity provider.',
  'GET /auth/callback/web': 'Where the provider leads it back to; it goes on to the dashboard with the tokens.',
  'GET /auth/callback':
    'The same address of a server whose dashboard is its own: leads on to `/dashboard/auth/callback`.',
  'GET /auth/embedded/interaction/:uid': 'Pages of the embedded identity provider.',
  'POST /auth/embedded/interaction/:uid': 'Their forms.',
  'POST /auth/refresh': '`{refresh_token, rotate}`: a new access token; with `rotate: true` a new refresh token too.',
  'POST /auth/logout': '`{refresh_token}`: ends all sessions of the user.',
  'POST /runners/attach':
    'Trades a runner token, as bearer, for an hour at the broker: `{public_key, name}` ([operating.md](operating.md#fleets)).',
  'GET /runners/socket':
    'Where runners of the fleet reach the broker, by WebSocket, with the ticket of `/runners/attach` as bearer; 426 without an upgrade.',
  'GET /auth/me': 'The user of an access token.',
  'GET /.well-known/openid-configuration': 'Who issues the id tokens of stages, as OpenID Connect Discovery has it.',
  'GET /.well-known/jwks.json': 'The public keys that id tokens are verified by.',
  'POST /webhook': 'A delivery of GitHub or GitLab: [webhooks.md](webhooks.md). Signed at most 25 MiB, unsigned 1 MiB.',
  'PUT /registry/packages/:hash':
    "Uploads an extension's package under its SHA-256; `publishExtension` makes it a version.",
  'GET, HEAD /registry/packages/:hash': 'The package of a version that the caller may see.',
};

export function routesReference(routes: readonly Route[]): string {
  const keys = routes.map(({ methods, path }) => `${methods} ${path}`);
  const unknown = keys.filter((key) => !Object.hasOwn(ROUTES, key));
  if (unknown.length > 0) throw new RangeError(`no meaning is written for: ${unknown.join(', ')}`);
  const gone = Object.keys(ROUTES).filter((key) => !keys.includes(key));
  if (gone.length > 0) throw new RangeError(`no service has: ${gone.join(', ')}`);
  const rows = routes.map(
    ({ methods, path, tier, service }) =>
      `| ${methods} | \`${path}\` | ${service} | ${tier} | ${ROUTES[`${methods} ${path}`]} |`,
  );
  return [
    '## Routes',
    'Each service answers with the same headers and errors. The tier is the budget of [operating.md](operating.md#limits-headers-and-proxies) that a request counts for.',
    ['| method | path | service | tier | meaning |', '|---|---|---|---|---|', ...rows].join('\n'),
  ].join('\n\n');
}

/** Every place that says a tier is a route. */
export function registeredRoutes(): Route[] {
  const routes = WITH_ROUTES.flatMap((service) => {
    const sources = sourcesOf(service);
    const constants = new Map(
      sources.flatMap((source) =>
        [...source.matchAll(/^(?:export )?const ([A-Z_]+) = (?:'(\/[^']*)'|`([^`]*)`);$/gm)].map(
          ([, name = '', plain, template]) => [name, plain ?? template ?? ''] as const,
        ),
      ),
    );
    return sources.flatMap((source) => routesOf(source, service, constants));
  });
  return routes.toSorted((a, b) => WITH_ROUTES.indexOf(a.service) - WITH_ROUTES.indexOf(b.service));
}

const REGISTRATION =
  /\.(get|post|put|route)(?:<[^(]+>)?\(\s*(?:('[^']*'|`[^`]*`|[A-Z_]+),|\{)[^;]*?tier: '(read|api|webhook)'|\.get\('([^']*)', READ/g;

function routesOf(source: string, service: string, constants: ReadonlyMap<string, string>): Route[] {
  const routes = [...source.matchAll(REGISTRATION)].map(([text, method = 'get', path, tier = 'read', plain]): Route => {
    const methods = method === 'route' ? (/method: \[([^\]]+)\]/.exec(text)?.[1] ?? '') : method.toUpperCase();
    const given = plain === undefined ? (path ?? /url: ('[^']*'|[A-Z_]+)/.exec(text)?.[1] ?? '') : `'${plain}'`;
    return { methods: methods.replaceAll("'", ''), path: resolved(given, constants), tier, service };
  });
  const said = source.match(/(?<!=> \[')tier: '(?:read|api|webhook)'|, READ,/g)?.length ?? 0;
  // `READ` is declared with a tier of its own.
  const declared = source.includes('const READ = ') ? 1 : 0;
  if (routes.length !== said - declared)
    throw new RangeError(`not understood: ${said - declared - routes.length} routes of '${service}'`);
  return routes;
}

function resolved(text: string, constants: ReadonlyMap<string, string>): string {
  const value = /^['`]/.test(text) ? text.slice(1, -1) : constants.get(text);
  if (value === undefined) throw new RangeError(`not understood: the path ${text}`);
  return value.replaceAll(/\$\{([A-Z_]+)\}/g, (_, name: string) => resolved(name, constants));
}

function sourcesOf(service: string): string[] {
  const folder = join(services, service, 'src');
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts'))
    .toSorted()
    .map((name) => readFileSync(join(folder, name), 'utf8').replaceAll('\r\n', '\n'));
}

// --- Codes -----------------------------------------------------------------------------------------------------------

const CODES: Readonly<Record<ErrorCode, string>> = {
  UNAUTHENTICATED: 'No credential, or one that is not valid, or of another kind than is needed here.',
  FORBIDDEN:
    'The credential is valid and does not suffice: a scope is missing, or the role that somebody was given at a repository.',
  NOT_FOUND: 'There is nothing of that name that the caller may see.',
  BAD_USER_INPUT:
    'An argument is missing or makes no sense, a pipeline file has mistakes, or an answer would be too large.',
  CONFLICT: 'It is not in a state that allows this: a run that has ended cannot be cancelled.',
  QUOTA_EXCEEDED: "The tier's runs of this month are used up.",
  RATE_LIMITED: 'Too many requests, streams or costly queries of this caller at a time.',
  UNAVAILABLE: '`retryAfter` says when to try again; a trigger also says `runId`, which makes repeating safe.',
  INTERNAL_SERVER_ERROR: 'A mistake of ours; the message has a correlation id that the log has too.',
};

function codesReference(): string {
  const rows = Object.entries(ERROR_CODES).map(
    ([code, { status, rest }]) => `| \`${code}\` | ${status} | \`${rest}\` | ${CODES[code as ErrorCode]} |`,
  );
  return [
    '## Codes of errors',
    'In GraphQL the code stands in `extensions.code`, and the status is 200; elsewhere the body is `{"error", "message"}` with this status. A document that cannot be executed has `GRAPHQL_PARSE_FAILED` or `GRAPHQL_VALIDATION_FAILED`: it is malformed, has too many tokens, or does not fit the schema; one that is too deep, too long or costs too much is `BAD_USER_INPUT`.',
    ['| GraphQL | status elsewhere | `error` elsewhere | meaning |', '|---|---|---|---|', ...rows].join('\n'),
  ].join('\n\n');
}

function hasText(text: string | null | undefined): text is string {
  return text !== null && text !== undefined && text !== '';
}

/** On one line; a bar would end the cell. */
function cell(text: string): string {
  return text.replaceAll(/\s*\n\s*/g, ' ').replaceAll('|', '\\|');
}
