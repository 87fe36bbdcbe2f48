/**
 * The environment of a local stage: the user's own, since tools, proxies and agents are set up there, without what
 * belongs to a server of ours; then what the pipeline says; then what tells the stage where it is.
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
  inherited['CI'] = 'true';
  inherited['PENSTOCK'] = 'true';
  return inherited;
}

export interface StagePlace {
  readonly runId: string;
  readonly pipeline: string;
  readonly stage: string;
  readonly attempt: number;
  readonly workspace: string;
  readonly outputFile: string;
  /** Where the files of the stage's extension are. */
  readonly extensionFolder?: string | undefined;
}

export function stageEnvironment(
  inherited: Readonly<Record<string, string>>,
  own: Readonly<Record<string, string>>,
  place: StagePlace,
): Record<string, string> {
  return {
    ...inherited,
    ...own,
    PENSTOCK_RUN_ID: place.runId,
    PENSTOCK_PIPELINE: place.pipeline,
    PENSTOCK_STAGE: place.stage,
    PENSTOCK_ATTEMPT: String(place.attempt),
    PENSTOCK_WORKSPACE: place.workspace,
    PENSTOCK_TRIGGER: 'local',
    SERVICE_OUTPUT: place.outputFile,
    ...(place.extensionFolder === undefined ? {} : { SERVICE_EXTENSION_PATH: place.extensionFolder }),
  };
}
