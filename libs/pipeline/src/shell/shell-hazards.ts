/**
 * Where a value that is safely quoted would still become code, because the command that receives it reads its arguments
 * as code: `eval`, `sh -c`, arithmetic, array subscripts, `awk` and `sed` programs and the like. The rules are about
 * words, the scanner has dealt with the quoting. In doubt an expression is refused: the way through `env:` is always open.
 */

/** Stands for one `${{ }}` in a script and in the words made of it. Text that holds it is refused beforehand. */
export const EXPRESSION_MARK = '\uFFFF';

/** One simple command: its words without quotes, and the expressions in them. */
export interface SimpleCommand {
  readonly words: string[];
  readonly expressions: ExpressionInCommand[];
}

export interface ExpressionInCommand {
  readonly index: number;
  /** Which word it stands in; -1 in a redirection or a here-document. */
  readonly word: number;
  /** Inside a `$( )` of that word rather than in the word itself. */
  readonly nested: boolean;
}

/** Variables whose text some program takes as code, as a program's name, or as an arithmetic expression. */
const CODE_VARIABLES = new Set([
  'BASH_ENV',
  'ENV',
  'ZDOTDIR',
  'PROMPT_COMMAND',
  'PS0',
  'PS1',
  'PS2',
  'PS3',
  'PS4',
  'IFS',
  'PATH',
  'SHELL',
  'SHELLOPTS',
  'BASHOPTS',
  'LD_PRELOAD',
  'LD_LIBRARY_PATH',
  'LD_AUDIT',
  'DYLD_INSERT_LIBRARIES',
  'DYLD_LIBRARY_PATH',
  'NODE_OPTIONS',
  'NODE_PATH',
  'PYTHONPATH',
  'PYTHONSTARTUP',
  'PERL5OPT',
  'PERL5LIB',
  'RUBYOPT',
  'RUBYLIB',
  'JAVA_TOOL_OPTIONS',
  'MAKEFLAGS',
  'GIT_SSH',
  'GIT_SSH_COMMAND',
  'GIT_EXTERNAL_DIFF',
  'GIT_PAGER',
  'GIT_EDITOR',
  'GIT_ASKPASS',
  'GIT_PROXY_COMMAND',
  'GIT_CONFIG_PARAMETERS',
  'PAGER',
  'EDITOR',
  'VISUAL',
  'BROWSER',
  'SSH_ASKPASS',
  'RANDOM',
  'SRANDOM',
  'SECONDS',
  'OPTIND',
  'LINENO',
  'HISTCMD',
  'EPOCHSECONDS',
  'BASHPID',
  'BASH_ARGV0',
]);

/** Whether an expression may not be the value of this variable. */
export function isCodeVariable(name: string): boolean {
  return CODE_VARIABLES.has(name);
}

const SHELLS = new Set([
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
const READ_AS_CODE = new Set([
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

/** Words that may stand before a command's name. */
const RESERVED = new Set(['if', 'then', 'else', 'elif', 'do', 'while', 'until', '!', '{', 'time', 'coproc']);

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

const ASSIGNMENT = /^([A-Za-z_][A-Za-z0-9_]*)(\[[^\]]*\])?\+?=/;
/** Tests that some shell computes: an operand `a[$(id)]` would run `id`. */
const EVALUATING_TEST = new Set(['-eq', '-ne', '-lt', '-le', '-gt', '-ge', '-v', '-R']);

const INTEGER_DECLARATION =
  /\b(?:declare|typeset|local|export|readonly)\b[^\n;]*\s[-+][A-Za-z]*[inEF]|(?:^|[\s;])(?:integer|float)\s/;

/** The index of the word that names the program, `words.length` where there is none. */
export function commandIndex(words: readonly string[]): number {
  let at = 0;
  for (;;) {
    const word = words[at];
    if (word === undefined) return at;
    const optionsWithWord = PREFIXES.get(baseName(word));
    if (optionsWithWord !== undefined) at = afterOptions(words, at + 1, optionsWithWord);
    else if (RESERVED.has(word) || ASSIGNMENT.test(word)) at += 1;
    else return at;
  }
}

function afterOptions(words: readonly string[], from: number, optionsWithWord: string): number {
  let at = from;
  for (; at < words.length; at++) {
    const word = words[at] ?? '';
    if (word.includes(EXPRESSION_MARK) && !ASSIGNMENT.test(word)) return at;
    if (/^-[A-Za-z]$/.test(word) && optionsWithWord.includes(word.slice(1))) at += 1;
    else if (!/^(-.*|[0-9.]+[smhd]?)$/.test(word)) return at;
  }
  return at;
}

/** Whether a script declares integer or reference variables anywhere: what is assigned to one of those is computed. */
export function declaresIntegers(script: string): boolean {
  return INTEGER_DECLARATION.test(script);
}

/** Calls `refuse` for each expression of the command that its receiver would read as code. */
export function judgeCommand(
  command: SimpleCommand,
  integersDeclared: boolean,
  refuse: (index: number, reason: string) => void,
): void {
  if (command.expressions.length === 0) return;
  const at = commandIndex(command.words);
  for (const expression of command.expressions) {
    const reason = hazardOf(command.words, at, expression, integersDeclared);
    if (reason !== undefined) refuse(expression.index, reason);
  }
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

function hazardOf(
  words: readonly string[],
  at: number,
  expression: ExpressionInCommand,
  integersDeclared: boolean,
): string | undefined {
  const name = baseName(words[at] ?? '');
  if (expression.word === -1)
    return runsItsInput(words) || READ_AS_CODE.has(name) ? `'${name}' would read the value as code` : undefined;
  const word = words[expression.word] ?? '';
  if (expression.word < at) return assignmentHazard(word, integersDeclared);
  if (expression.word === at) return 'the value would choose the program to run';
  if (isComputedName(words[at] ?? ''))
    return 'the program is named by an expansion or a pattern, so what it does with the value is not known';
  if (name === 'for' || name === 'select' || name === 'function') {
    return expression.word === at + 1 ? `the value would be a name that '${name}' defines` : undefined;
  }
  if (READ_AS_CODE.has(name)) return `'${name}' reads its arguments as code or as arithmetic`;
  if (name === 'export' || name === 'readonly' || name === 'local')
    return declarationHazard(words, at, word, integersDeclared, name);
  if (name === '[' || name === '[[' || name === 'test') {
    return words.some((other) => EVALUATING_TEST.has(other))
      ? 'a shell may compute the operands of such a test, and run commands in them'
      : undefined;
  }
  return shellHazard(words, at, expression.word) ?? interpreterHazard(words, at, expression.word, name);
}

function assignmentHazard(word: string, integersDeclared: boolean): string | undefined {
  const target = ASSIGNMENT.exec(word);
  if (target === null) return 'the value would choose the program to run';
  if (target[2]?.includes(EXPRESSION_MARK) === true)
    return 'an array subscript is computed, and commands in it are run';
  if (isCodeVariable(target[1] ?? '')) return `'${target[1] ?? ''}' is a variable whose text is taken as code`;
  return integersDeclared
    ? 'this script declares integer or reference variables, and what is assigned to one is computed'
    : undefined;
}

function declarationHazard(
  words: readonly string[],
  at: number,
  word: string,
  integersDeclared: boolean,
  name: string,
): string | undefined {
  if (!ASSIGNMENT.test(word)) return `'${name}' takes the value for a name`;
  return assignmentHazard(
    word,
    integersDeclared || words.slice(at + 1).some((other) => /^[-+][A-Za-z]*[in]/.test(other)),
  );
}

/** `sh -c` wherever it stands in the command (`docker exec x sh -c …`), and the script that a shell is given to run. */
function shellHazard(words: readonly string[], at: number, expressionWord: number): string | undefined {
  for (let index = at; index < expressionWord; index++) {
    const name = baseName(words[index] ?? '');
    if (!SHELLS.has(name)) continue;
    const between = words.slice(index + 1, expressionWord + 1);
    if (between.some((word) => /^(-[A-Za-z]*c|--command|-Command)/.test(word)))
      return `'${name} -c' reads its arguments as code`;
    if (between.slice(0, -1).every((word) => word.startsWith('-') || word.startsWith('+') || name === 'busybox'))
      return `the value would choose the script that '${name}' runs`;
  }
  return undefined;
}

function interpreterHazard(
  words: readonly string[],
  at: number,
  expressionWord: number,
  name: string,
): string | undefined {
  for (let index = at; index < expressionWord; index++) {
    const program = baseName(words[index] ?? '');
    const known = INTERPRETERS.find((candidate) => candidate.name.test(program));
    if (known === undefined) continue;
    const between = words.slice(index + 1, expressionWord + 1);
    if (between.some((word) => known.flag.test(word))) return `'${program}' reads this argument as code`;
    if (index !== at || known.operand !== true) continue;
    // `awk -v name=value` is data; the first word that is neither an option nor an option's value is the program.
    const operand = between.findIndex(
      (word, offset) => !word.startsWith('-') && !/^-[vFf]$/.test(between[offset - 1] ?? ''),
    );
    if (operand === between.length - 1)
      return `'${name}' reads this argument as code, or as the name of the program to run`;
  }
  return undefined;
}

/** A name that the shell makes out of something else: `$x`, `l[e]t`, `{eval,x}`. */
function isComputedName(word: string): boolean {
  return word !== '[' && word !== '[[' && /[$`*?[{]/.test(word);
}

function baseName(word: string): string {
  return word.slice(word.lastIndexOf('/') + 1);
}
