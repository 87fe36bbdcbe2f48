/** From the environment and the flags to typed values, or to one error that names every wrong or missing variable. */
import { ConfigurationError } from './errors.ts';
import type { ListenAddress } from './kinds.ts';
import { jwtSecretsOf } from './jwt-secrets.ts';
import { publicReason, serverMode, type Reachability, type ServerMode } from './server-mode.ts';
import { bootstrapVariables, variables, type ValueOf, type VariableKey } from './variables.ts';
import type { Variable } from './variables/declared.ts';

/** HS256 is as strong as its key. */
const JWT_SECRET_BYTES_MIN = 32;

/** Whether a secret for signing tokens, or one of several, is given and too short; a warning in development mode, an error in production mode. */
export function isShortSecret(given: unknown): boolean {
  if (typeof given !== 'string') return false;
  return jwtSecretsOf(given).some((secret) => Buffer.byteLength(secret) < JWT_SECRET_BYTES_MIN);
}

export interface ConfigurationSources {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Values given by flags, which stand above the environment; `name` is what the user typed (`--listen`). */
  readonly flags?:
    | { readonly [K in VariableKey]?: { readonly name: string; readonly value: string } | undefined }
    | undefined;
}

export type Configuration<K extends VariableKey> = { readonly [Name in K]: ValueOf<Name> };

/**
 * Throws ConfigurationError. A variable set to nothing counts as not set. Where both `listen` and `mode` are read, what
 * production mode requires is checked too.
 */
export function readConfiguration<K extends VariableKey>(
  keys: readonly K[],
  sources: ConfigurationSources,
): Configuration<K> {
  const problems: string[] = [];
  const values: { [key: string]: unknown } = {};
  for (const key of keys) {
    const declared: Variable<unknown, unknown> = variables[key];
    const flag = sources.flags?.[key];
    const given = (flag?.value ?? sources.env[declared.name] ?? '').trim();
    values[key] = declared.default;
    if (given === '') {
      if (flag !== undefined) problems.push(`${flag.name} needs a value (${plain(declared.kind.form)})`);
      continue;
    }
    const parsed = declared.kind.parse(given);
    if ('value' in parsed) values[key] = parsed.value;
    // A problem may quote the value, or a part of it.
    else if (declared.secret === true)
      problems.push(`${flag?.name ?? declared.name} is to be ${plain(declared.kind.form)}`);
    else problems.push(`${flag?.name ?? declared.name} is '${shortened(given)}'; it ${parsed.problem}`);
  }
  if (includes(keys, 'listen') && includes(keys, 'mode')) problems.push(...modeProblems(keys, values));
  if (problems.length > 0) throw new ConfigurationError(problems);
  return values as Configuration<K>;
}

/** For the command, by whoever uses it on the machine of a server too. */
const COMMAND_VARIABLES = ['SERVICE_URL', 'SERVICE_RUNNER_TOKEN'];

/** Variables that look like ours and are not: most likely misspelt. For a warning at the start. */
export function unknownVariables(
  env: ConfigurationSources['env'],
): { readonly name: string; readonly suggestion: string | null }[] {
  const known = [
    ...Object.values(variables).map(({ name }) => name as string),
    ...bootstrapVariables,
    ...COMMAND_VARIABLES,
  ];
  return Object.keys(env)
    .filter((name) => name.startsWith('SERVICE_') && !known.includes(name) && !name.startsWith('SERVICE_TEST_'))
    .toSorted()
    .map((name) => ({ name, suggestion: nearest(name, known) }));
}

function modeProblems(keys: readonly VariableKey[], values: { readonly [key: string]: unknown }): string[] {
  const reachability: Reachability = {
    listen: values['listen'] as ListenAddress,
    mode: values['mode'] as ServerMode | undefined,
    baseUrl: values['baseUrl'] as string | undefined,
    trustProxy: values['trustProxy'] as readonly string[] | undefined,
  };
  const mode = serverMode(reachability);
  const reason = publicReason(reachability);
  if (mode === null)
    return [`SERVICE_MODE is 'development', and others can reach the server because ${reason}; leave it out`];
  if (mode === 'development') return [];
  const why = reason === null ? 'SERVICE_MODE asks for it' : reason;
  return keys.flatMap((key) => {
    if (key === 'jwtSecret' && isShortSecret(values[key]))
      return [
        `JWT_SECRET is shorter than ${JWT_SECRET_BYTES_MIN} bytes${String(values[key]).includes(',') ? ', or one of those that its commas part is' : ''}; make one with: openssl rand -hex 32`,
      ];
    const declared: Variable<unknown, unknown> = variables[key];
    return declared.requiredInProduction === undefined || values[key] !== undefined
      ? []
      : [`${declared.name} is missing, and production mode (${why}) needs it; ${declared.requiredInProduction}`];
  });
}

function includes(keys: readonly VariableKey[], key: VariableKey): boolean {
  return keys.includes(key);
}

/** A value is shown so that its owner knows it again. */
function shortened(value: string): string {
  return value.length <= 60 ? value : `${value.slice(0, 57)}...`;
}

function plain(form: string): string {
  return form.replaceAll('`', '');
}

function nearest(name: string, known: readonly string[]): string | null {
  const [best] = known
    .map((candidate) => ({ candidate, distance: editDistance(name, candidate) }))
    .toSorted((a, b) => a.distance - b.distance);
  return best !== undefined && best.distance <= 3 ? best.candidate : null;
}

function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      next.push(
        Math.min((row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1, (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1)),
      );
    }
    row = next;
  }
  return row[b.length] ?? 0;
}
