/**
 * What a local stage inherits: the user's own environment, since tools, proxies and agents are set up there, without what
 * belongs to a Penstock server.
 */

/** A server's settings and secrets, which a stage on a server never sees either. */
const SERVER_VARIABLES = /^(SERVICE_|JWT_SECRET$|GIT_HOST_|PENSTOCK_)/;
/** Names that every shell can hold; exported bash functions and the like stay behind. */
const PORTABLE_NAME = /^[A-Za-z_][A-Za-z0-9_]*$/;
/** What a shell or npm says about itself, not about the user. */
const PROCESS_VARIABLES: ReadonlySet<string> = new Set([
  '_',
  'SHLVL',
  'PWD',
  'OLDPWD',
  'INIT_CWD',
  'NODE_COMPILE_CACHE',
]);
const NPM_VARIABLES = /^npm_(config|lifecycle|package|command|execpath|node_execpath)/;
/** Longer ones no process can be given; a stage must not fail for what it did not ask for. */
const VALUE_BYTES_MAX = 100_000;

export function inheritedEnvironment(env: Readonly<Record<string, string | undefined>>): Record<string, string> {
  const inherited: Record<string, string> = {};
  for (const [name, value] of Object.entries(env)) {
    if (value === undefined || value.length > VALUE_BYTES_MAX || !PORTABLE_NAME.test(name)) continue;
    if (SERVER_VARIABLES.test(name) || PROCESS_VARIABLES.has(name) || NPM_VARIABLES.test(name)) continue;
    inherited[name] = value;
  }
  return inherited;
}

/** In a container: where this machine has its programs and its user's files means nothing there. */
export function withoutMachine(inherited: Readonly<Record<string, string>>, home: string): Record<string, string> {
  return {
    ...Object.fromEntries(Object.entries(inherited).filter(([name]) => CONTAINER_VARIABLES.test(name))),
    HOME: home,
  };
}

const CONTAINER_VARIABLES =
  /^(LANG|LANGUAGE|LC_[A-Z]+|TZ|TERM|COLORTERM|NO_COLOR|FORCE_COLOR|((https?|no|all)_proxy))$/i;
