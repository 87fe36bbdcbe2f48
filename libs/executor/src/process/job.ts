/**
 * A stage as text for a helper's shell to source: it sets the environment, goes to the folder and becomes the stage's
 * shell. Every value is quoted data; none stands in the arguments of a process but the script itself.
 */
import { basename } from 'node:path';
import { UnstartableStage } from '../contract/errors.ts';
import type { StageCommand, StageFiles, StageSpec } from '../contract/port.ts';
import { needsAnotherShell } from './own-shell.ts';
import { quote } from './quote.ts';

/** The kernel takes no single argument or variable of more (MAX_ARG_STRLEN, its closing NUL included). */
const STRING_BYTES_MAX = 131_071;
/** A longer script goes by file; below the kernel's limit, since the shell's quoting inside a list can lengthen it. */
const SCRIPT_BYTES_MAX = 100_000;
/** Arguments and environment together: a quarter of the usual 8 MiB stack, less room for what the stage adds. */
const TOTAL_BYTES_MAX = 1_800_000;

const VARIABLE_NAME = /^[A-Za-z_][A-Za-z0-9_]*$/;
/** Shells keep these for themselves and refuse their assignment; `env` hands them on without one. */
const SHELL_VARIABLES = new Set([
  'BASHOPTS',
  'BASH_VERSINFO',
  'EUID',
  'GROUPS',
  'LINENO',
  'OPTIND',
  'PPID',
  'SHELLOPTS',
  'UID',
  'PWD',
  'OLDPWD',
  '_',
]);
const POSIX_SHELLS = new Set(['sh', 'ash', 'bash', 'dash', 'ksh', 'mksh', 'zsh']);
/** How a program that is no shell takes its script, where that is not `-c`. */
const SCRIPT_FLAGS: Readonly<Record<string, string>> = {
  node: '-e',
  bun: '-e',
  perl: '-e',
  ruby: '-e',
  lua: '-e',
  Rscript: '-e',
  php: '-r',
};

export interface Job {
  readonly text: Buffer;
  /** Files that the text refers to, to be removed afterwards. */
  readonly files: readonly string[];
}

/**
 * `writeFile` keeps a script that is too long for an argument and answers its path. `defaults`: variables of a stage that has
 * none of these. `isHelpers`: whoever sources the job evaluates the argument that it leaves (helper.sh). `waits`: and all that does not
 * depend on what is on the machine is done before the word to go on. Throws UnstartableStage.
 */
export function renderJob(
  spec: StageSpec,
  writeFile: (script: string) => string,
  {
    defaults = { PATH: DEFAULT_PATH },
    isHelpers = false,
    waits = false,
  }: {
    readonly defaults?: Readonly<Record<string, string>>;
    readonly isHelpers?: boolean;
    readonly waits?: boolean;
  } = {},
): Job {
  const shell = spec.shell ?? 'sh';
  checkText(shell, 'shell');
  checkText(spec.cwd, 'workdir');
  if (spec.commands.length === 0) throw new UnstartableStage('the stage has no command');
  const files: string[] = [];
  const invoke = (flags: string, script: string): string => {
    checkText(script, 'script');
    if (Buffer.byteLength(script) <= SCRIPT_BYTES_MAX) return `${quote(shell)} ${flags} ${quote(script)}`;
    const path = writeFile(script);
    files.push(path);
    return `${quote(shell)} ${flags.replace(/\s*-[cer]$/, '')} ${quote(path)}`;
  };

  const { inherited, all } = variablesOf(spec, { ...defaults, HOME: spec.cwd });
  const { env, shellVariables } = sortVariables(all);
  const passed =
    shellVariables.length === 0
      ? ''
      : `env ${shellVariables.map(([name, value]) => quote(`${name}=${value}`)).join(' ')} `;
  // What the way to this shell may have left in its environment.
  const lines = [
    outputs(isHelpers, waits ? '5>&- 6>&-' : CLOSED),
    'unset SHLVL PENSTOCK_JOB',
    ...fileLines(spec.files),
  ];
  if (isHelpers) lines.push(UNSET_HELPERS);
  if (POSIX_SHELLS.has(basename(shell))) {
    const { bindings, script } = joinCommands(spec.commands);
    lines.push(...inherited, ...exports({ ...env, ...bindings }), ...(waits ? WAIT : []), ...enter(spec.cwd, shell));
    const mayBeOwn = isHelpers && shell === 'sh' && passed === '' && Buffer.byteLength(script) <= SCRIPT_BYTES_MAX;
    const path = env['PATH'] ?? spec.inherited?.['PATH'];
    const needsAnother = mayBeOwn ? needsAnotherShell(spec.commands, env, path) : null;
    if (needsAnother === null) lines.push(`exec ${passed}${invoke('-e -c', script)}`);
    else {
      checkText(script, 'script');
      lines.push(`set -- ${quote(script)}`, `if ${needsAnother}; then exec sh -e -c "$1"; fi`);
    }
  } else {
    // Programs that know nothing of each other: a process each.
    const flag = SCRIPT_FLAGS[basename(shell)] ?? '-c';
    lines.push(...inherited, ...exports(env), ...(waits ? WAIT : []), ...enter(spec.cwd, shell));
    for (const command of spec.commands) {
      lines.push(
        `( ${exports(command.bindings).join('; ')}`,
        `exec ${passed}${invoke(flag, command.script)} ) || exit $?`,
      );
    }
  }
  const text = Buffer.from(`${lines.join('\n')}\n`);
  if (text.length > TOTAL_BYTES_MAX) {
    throw new UnstartableStage(
      `its scripts and variables take ${text.length} bytes; a process can be given ${TOTAL_BYTES_MAX}`,
    );
  }
  return { text, files };
}

const CLOSED = '3>&- 4>&- 5>&- 6>&-';
/**
 * A helper's next stages have the same pipes: opened anew, since what a program sets of what it has inherited stays behind it. One that leaves
 * its output non-blocking, as ssh and others do, would make writes of the stages after it fail. `descriptors`: where the helper has found
 * its own (helper.sh).
 */
function outputs(isHelpers: boolean, closed: string): string {
  const same = `exec 1>&5 2>&6 ${closed}`;
  if (!isHelpers) return same;
  const anew = (folder: string): string => `exec 1>${folder}/5 2>${folder}/6 ${closed}`;
  return [
    `if [ "$descriptors" ]; then ${anew('"$descriptors"')}`,
    `elif [ -p /proc/self/fd/5 ] && [ -w /proc/self/fd/5 ]; then ${anew('/proc/self/fd')}; else ${same}; fi`,
  ].join('; ');
}

/** The word, which is no order, since who waits for it may have been killed: then its helper reads it. No stage has a variable of this name. */
export const GO = 'go';
const WAIT = ['read -r _ <&3 || exit 0', `[ "$_" = ${GO} ] || exit 0`, 'exec 3>&- 4>&-', 'unset _'];
/** What a script would find in a shell that is its helper's (helper.sh). */
const UNSET_HELPERS =
  'unset shell own drop ahead rightless unshares stage descriptors order asked status rounds; unset -f start ask';
const DEFAULT_PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';

/**
 * A list runs in one shell under `-e`: a folder that was changed to and a variable that was set stay for the next
 * command. Each is parsed by itself, so that an open quote in one cannot turn the next one's quoting around.
 */
function joinCommands(commands: readonly StageCommand[]): { bindings: Record<string, string>; script: string } {
  const [only] = commands;
  if (commands.length === 1 && only !== undefined) return { bindings: { ...only.bindings }, script: only.script };
  const bindings: Record<string, string> = {};
  const script = commands.map((command, index) => {
    const own = Object.entries(command.bindings).map(([name, value]) => {
      checkName(name);
      bindings[`PENSTOCK_${index}_${name}`] = value;
      return `export ${name}="\${PENSTOCK_${index}_${name}}"\n`;
    });
    return `${own.join('')}eval ${quote(command.script)}`;
  });
  return { bindings, script: script.join('\n') };
}

/** Before anything of the stage's own is set: programs are found as its machine has them. */
function fileLines(files: StageFiles | undefined): string[] {
  if (files === undefined) return [];
  const paths = files.files.map(({ variable, content }) => {
    checkName(variable);
    checkText(content, `file of ${variable}`);
    return { variable, content, path: `${files.folder}/${variable}` };
  });
  return [
    `( umask 077; mkdir ${quote(files.folder)}${paths.map(({ content, path }) => ` && printf %s ${quote(content)} >${quote(path)}`).join('')} ) ||`,
    `{ echo 'penstock: the files of its secrets could not be made' >&2; exit 126; }`,
    ...paths.map(({ variable, path }) => `export ${variable}=${quote(path)}`),
  ];
}

function exports(variables: Readonly<Record<string, string>>): string[] {
  const entries = Object.entries(variables);
  if (entries.length === 0) return [];
  const assigned = entries.map(([name, value]) => {
    checkVariable(name, value);
    return `${name}=${quote(value)}`;
  });
  return [`export ${assigned.join(' ')}`];
}

function enter(cwd: string, shell: string): string[] {
  const lines = [
    `cd ${quote(cwd)} 2>&- || { echo ${quote(`penstock: there is no folder ${cwd}`)} >&2; exit 126; }`,
    'unset OLDPWD',
  ];
  if (shell !== 'sh') {
    lines.push(
      `command -v ${quote(shell)} >/dev/null || { echo ${quote(`penstock: there is no shell '${shell}' here`)} >&2; exit 127; }`,
    );
  }
  return lines;
}

/** Of each object that stages inherit; null: some of it a shell keeps for itself, or what it is given decides how a script runs. */
const inheritedLines = new WeakMap<Readonly<Record<string, string>>, readonly string[] | null>();

/** Lines that set what many stages inherit, put together once; and what else this one is given. */
function variablesOf(
  { inherited, env }: StageSpec,
  defaults: Readonly<Record<string, string>>,
): { inherited: readonly string[]; all: Readonly<Record<string, string>> } {
  if (inherited === undefined) return { inherited: [], all: { ...defaults, ...env } };
  let lines = inheritedLines.get(inherited);
  if (lines === undefined) {
    const isPlain = sortVariables(inherited).shellVariables.length === 0 && !Object.hasOwn(inherited, 'IFS');
    lines = isPlain ? exports(inherited) : null;
    inheritedLines.set(inherited, lines);
  }
  if (lines === null) return { inherited: [], all: { ...defaults, ...inherited, ...env } };
  const lacking = Object.entries(defaults).filter(([name]) => !Object.hasOwn(inherited, name));
  return { inherited: lines, all: { ...Object.fromEntries(lacking), ...env } };
}

function sortVariables(all: Readonly<Record<string, string>>): {
  env: Readonly<Record<string, string>>;
  shellVariables: [string, string][];
} {
  const shellVariables: [string, string][] = [];
  for (const name of SHELL_VARIABLES) {
    const value = all[name];
    if (value === undefined) continue;
    checkVariable(name, value);
    shellVariables.push([name, value]);
  }
  if (shellVariables.length === 0) return { env: all, shellVariables };
  return {
    env: Object.fromEntries(Object.entries(all).filter(([name]) => !SHELL_VARIABLES.has(name))),
    shellVariables,
  };
}

function checkVariable(name: string, value: string): void {
  checkName(name);
  checkText(value, `variable ${name}`);
  // No character takes more than three bytes: most are short enough without being counted.
  if (name.length + 1 + 3 * value.length <= STRING_BYTES_MAX) return;
  const bytes = name.length + 1 + Buffer.byteLength(value);
  if (bytes > STRING_BYTES_MAX)
    throw new UnstartableStage(`the variable ${name} takes ${bytes} bytes; a process can be given ${STRING_BYTES_MAX}`);
}

function checkName(name: string): void {
  if (!VARIABLE_NAME.test(name))
    throw new UnstartableStage(`no shell can hold a variable named ${JSON.stringify(name)}`);
}

function checkText(value: string, what: string): void {
  if (value.includes('\0')) throw new UnstartableStage(`the ${what} holds a NUL byte, which no process can be given`);
}
