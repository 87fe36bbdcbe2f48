/** The words of a command, and what is known of the names in them: shells, interpreters, the words before a program. */

import type { CommandLine } from './command-line.ts';

/** Stands for one `${{ }}` in a script and in the words made of it. Text that holds it is refused beforehand. */
export const EXPRESSION_MARK = '\uFFFF';

/** One simple command: its words without quotes, and the expressions in them. */
export interface SimpleCommand {
  readonly words: string[];
  readonly expressions: ExpressionInCommand[];
  /** The commands of the `{ }`, loop or `( )` that ends here: what is redirected here is theirs. */
  closes?: CommandLine | undefined;
}

export interface ExpressionInCommand {
  readonly index: number;
  /** Which word it stands in; `INPUT` where it is or names the standard input, `OUTPUT` in any other redirection. */
  readonly word: number;
  /** Inside a `$( )` of that word rather than in the word itself. */
  readonly nested: boolean;
  /** Inside a `$( )` without quotes, whose output becomes several words. */
  readonly splits?: boolean | undefined;
}

export const INPUT = -1;
export const OUTPUT = -2;

export const SHELLS = new Set([
  'sh',
  'bash',
  'dash',
  'ash',
  'zsh',
  'ksh',
  'ksh93',
  'mksh',
  'busybox',
  'fish',
  'csh',
  'tcsh',
  'pwsh',
]);

/** Commands all of whose arguments are read as code, as arithmetic or as variable names with subscripts. */
export const READ_AS_CODE = new Set([
  'eval',
  'source',
  '.',
  'trap',
  'alias',
  'let',
  'declare',
  'typeset',
  'integer',
  'float',
  'unset',
  'read',
  'mapfile',
  'readarray',
  'getopts',
  'complete',
  'compgen',
  'bind',
  'fc',
  'enable',
  'hash',
  'exit',
  'return',
  'shift',
  'break',
  'continue',
  'ulimit',
  'wait',
  'functions',
  'autoload',
  'ssh',
  'su',
  'runuser',
  'watch',
  'parallel',
  'at',
  'batch',
  'crontab',
  'expect',
  'osascript',
  'sqlite3',
  'script',
  'tmux',
  'screen',
  'make',
  'gmake',
]);

/** Programs that take code behind one of these options, or (with `operand`) as their first argument. */
const INTERPRETERS: readonly { readonly name: RegExp; readonly flag: RegExp; readonly operand?: boolean }[] = [
  { name: /^(python|pypy)[0-9.]*$/, flag: /^-[A-Za-z]*c/, operand: true },
  { name: /^perl[0-9.]*$/, flag: /^-[A-Za-z0-9]*[eE]/, operand: true },
  { name: /^(ruby|irb)[0-9.]*$/, flag: /^-[A-Za-z]*e/, operand: true },
  { name: /^(node|nodejs|bun|deno)$/, flag: /^(-[a-z]*[ep]|--eval|--print|eval)/, operand: true },
  { name: /^(php|lua|luajit|Rscript|tclsh|groovy|scala|julia)[0-9.]*$/, flag: /^-[A-Za-z]*[rReE]/, operand: true },
  { name: /^([gmn]?awk|original-awk)$/, flag: /^(-[eE]|--source)/, operand: true },
  { name: /^g?sed$/, flag: /^(-[A-Za-z]*e|--expression)/, operand: true },
  { name: /^(psql|mysql|mariadb|vim|vi|nvim|gdb|emacs|ex|ed)$/, flag: /^(-[a-z]*[cex]|--command|--execute|--eval)/ },
  { name: /^(git|flock|npm|npx|pnpm|yarn)$/, flag: /^(-c|--call|--exec|-x|--upload-pack|--receive-pack)/ },
  { name: /^env$/, flag: /^(-[a-z0]*S|--split-string)/ },
  { name: /^print$/, flag: /^-[A-Za-z]*[Pzsv]/ },
  { name: /^printf$/, flag: /^-v/ },
];

/** Programs that run another one, or the text they are given, whatever their options. */
const RUNNERS = new Set([
  'xargs',
  'setpriv',
  'flock',
  'chroot',
  'nsenter',
  'unshare',
  'strace',
  'ltrace',
  'entr',
  'doas',
  'busybox',
  'toybox',
  'm4',
  'dc',
  'bc',
  'ed',
  'ex',
  'vi',
  'vim',
  'nvim',
  'emacs',
  'gdb',
  'socat',
  'nc',
  'start-stop-daemon',
  'systemd-run',
  'dbus-run-session',
  'rlwrap',
  'unbuffer',
  'ssh-agent',
  'coproc',
  'ninja',
  'just',
  'npx',
  'bunx',
  'ts-node',
  'tsx',
]);

/** Whether a program runs what it is given. */
export function isInterpreter(program: string): boolean {
  return (
    SHELLS.has(program) || READ_AS_CODE.has(program) || RUNNERS.has(program) || interpreterOf(program)?.operand === true
  );
}

export type Interpreter = (typeof INTERPRETERS)[number];

/** Names that were looked up lately: a command may have tens of thousands of words, each of which is asked for each of its values. */
const lookedUp = new Map<string, Interpreter | undefined>();
const LOOKED_UP_MAX = 1_000;

export function interpreterOf(program: string): Interpreter | undefined {
  if (lookedUp.has(program)) return lookedUp.get(program);
  const known = INTERPRETERS.find((candidate) => candidate.name.test(program));
  if (lookedUp.size >= LOOKED_UP_MAX) lookedUp.clear();
  if (program.length < 64) lookedUp.set(program, known);
  return known;
}

/** Words that may stand before a command's name. */
export const RESERVED = new Set(['if', 'then', 'else', 'elif', 'do', 'while', 'until', '!', '{', 'time', 'coproc']);

/** Commands that run the command after them, and which of their options take a word of their own. */
const PREFIXES: ReadonlyMap<string, string> = new Map([
  ['command', ''],
  ['builtin', ''],
  ['exec', 'a'],
  ['nohup', ''],
  ['setsid', ''],
  ['time', 'fo'],
  ['chronic', ''],
  ['env', 'uC'],
  ['sudo', 'ughpCrtTD'],
  ['doas', 'uC'],
  ['nice', 'n'],
  ['timeout', 'ks'],
  ['stdbuf', 'ioe'],
  ['ionice', 'cnp'],
  ['xargs', 'ILPdaEns'],
]);

export const ASSIGNMENT = /^([A-Za-z_][A-Za-z0-9_]*)(\[[^\]]*\])?\+?=/;

/** How far the words of a command are looked at, which may become more: behind a word of PREFIXES `options` are passed over. */
interface Looked {
  at: number;
  options: string | undefined;
}

/** A command is asked for its program at each of its words, and may have tens of thousands. */
const looked = new WeakMap<readonly string[], Looked>();

/** The index of the word that names the program, `words.length` or more where there is none yet. Words are added at the end alone. */
export function commandIndex(words: readonly string[]): number {
  let state = looked.get(words);
  if (state === undefined) looked.set(words, (state = { at: 0, options: undefined }));
  while (state.at < words.length) {
    const word = words[state.at] ?? '';
    if (state.options !== undefined) {
      if (isOptionWithWord(word, state.options)) state.at += 2;
      else if (isPassedOver(word)) state.at += 1;
      else state.options = undefined;
      continue;
    }
    state.options = PREFIXES.get(baseName(word));
    if (state.options === undefined && !RESERVED.has(word) && !ASSIGNMENT.test(word)) break;
    state.at += 1;
  }
  return state.at;
}

function isOptionWithWord(word: string, options: string): boolean {
  return !isValue(word) && /^-[A-Za-z]$/.test(word) && options.includes(word.slice(1));
}

function isPassedOver(word: string): boolean {
  return !isValue(word) && /^(-.*|[0-9.]+[smhd]?)$/.test(word);
}

function isValue(word: string): boolean {
  return word.includes(EXPRESSION_MARK) && !ASSIGNMENT.test(word);
}

/** Whether the command runs the text it is given on its standard input, as in `… | sh`. */
export function runsItsInput(words: readonly string[]): boolean {
  const at = commandIndex(words);
  const name = baseName(words[at] ?? '');
  const rest = words.slice(at + 1);
  const operands = rest.filter((word) => !word.startsWith('-')).length;
  // `ssh host` gives its input to a shell there; with a command (`ssh -p 22 host tar x`) it is that command's data.
  if (name === 'ssh') return operands <= 2;
  if (SHELLS.has(name))
    return operands === 0 || rest.some((word) => /^-[A-Za-z]*s/.test(word) || word === '/dev/stdin');
  if (/^([gmn]?awk|original-awk|g?sed)$/.test(name)) return false;
  return operands === 0 && INTERPRETERS.some((known) => known.operand === true && known.name.test(name));
}

export function baseName(word: string): string {
  return word.slice(word.lastIndexOf('/') + 1);
}
