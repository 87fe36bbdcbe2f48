/**
 * What the command that receives a value does with it. The shell itself has been seen to in `shell-hazards.ts`; here it
 * is the programs: a value that comes from outside may only reach one that is known to take it as data
 * (`known-commands.ts`), that belongs to the project (`./deploy.sh`, `node scripts/release.js`), or a function of the
 * script. Everything else is refused.
 */
import { PLAIN, READERS, TOOLS } from './known-commands.ts';
import type { CommandForm } from './known-commands.ts';
import { baseName, EXPRESSION_MARK, isInterpreter, RESERVED, ASSIGNMENT } from './shell-words.ts';
import type { ExpressionInCommand } from './shell-words.ts';
import type { ValueCheck } from './option-check.ts';

/** What is known of the whole script. */
export interface ScriptFacts {
  /** Functions that the script defines; they stand before programs of the same name. */
  readonly functions: ReadonlySet<string>;
  /** The script evaluates text somewhere, so what its functions do with their arguments is not known. */
  readonly evaluatesText: boolean;
}

export interface Verdict {
  /** Why the value cannot stand there. */
  readonly refusal?: string;
  /** What the value must not be. */
  readonly check?: ValueCheck;
}

/** Stands for an option that cannot be told. */
const ILLEGIBLE = '-?';

const DATA: Verdict = {};
const NO_OPTION: Verdict = { check: 'option' };

/** Options of a command that runs the one behind it: without a value, and with one. */
interface Prefix {
  readonly flags: RegExp;
  readonly values: RegExp;
}

const PREFIXES: Readonly<Record<string, Prefix>> = {
  command: { flags: /^-p$/, values: /^$/ },
  builtin: { flags: /^$/, values: /^$/ },
  exec: { flags: /^-[cl]+$/, values: /^-a$/ },
  nohup: { flags: /^$/, values: /^$/ },
  setsid: { flags: /^-[cfw]+$/, values: /^$/ },
  time: { flags: /^-[pv]$/, values: /^-[fo]$/ },
  env: { flags: /^(-i|-|--ignore-environment)$/, values: /^-[uC]$/ },
  sudo: { flags: /^-[EnHkS]+$/, values: /^-[ugCD]$/ },
  nice: { flags: /^-[0-9]+$/, values: /^-n$/ },
  timeout: { flags: /^(--foreground|--preserve-status|-v|[0-9.]+[smhd]?)$/, values: /^-[ks]$/ },
  stdbuf: { flags: /^-[ioe][0L]$/, values: /^-[ioe]$/ },
  ionice: { flags: /^-[cn][0-9]$/, values: /^-[cn]$/ },
};

/** Where the name of the program stands, or undefined where the words before it cannot be followed for certain. */
function programIndex(words: readonly string[]): number | undefined {
  let at = 0;
  for (;;) {
    const word = words[at];
    if (word === undefined) return at;
    const prefix = Object.hasOwn(PREFIXES, baseName(word)) ? PREFIXES[baseName(word)] : undefined;
    if (prefix !== undefined) {
      at = afterPrefix(words, at + 1, prefix);
      if ((words[at] ?? '').startsWith('-')) return undefined;
    } else if (RESERVED.has(word) || ASSIGNMENT.test(word)) at += 1;
    else return at;
  }
}

function afterPrefix(words: readonly string[], from: number, { flags, values }: Prefix): number {
  let at = from;
  for (let word = words[at]; word !== undefined; word = words[at]) {
    if (values.test(word)) at += 2;
    else if (flags.test(word)) at += 1;
    else break;
  }
  return Math.min(at, words.length);
}

/** `env`, `printenv`, `set`, `export -p`: values are handed over as variables, so each of these prints them. */
export function printsEnvironment(words: readonly string[]): boolean {
  const at = programIndex(words);
  if (at === undefined || at >= words.length) return words.some((word) => baseName(word) === 'env');
  const name = baseName(words[at] ?? '');
  const isListing = /^(set|export|readonly|declare|typeset|local)$/.test(name);
  return name === 'printenv' || (isListing && words.slice(at + 1).every((word) => /^-[px]+$/.test(word)));
}

/** Whether a value may stand where it does among the words of a command. */
export function judgeArgument(words: readonly string[], use: ExpressionInCommand, facts: ScriptFacts): Verdict {
  const at = programIndex(words);
  if (at === undefined) return refused('the words before the program cannot be followed');
  return use.word < at ? DATA : judgeWords(words, at, use, facts);
}

/** Whether a command may be given a value on its standard input; the reason why not. */
export function judgeInput(words: readonly string[], facts: ScriptFacts): string | undefined {
  const at = programIndex(words);
  if (at === undefined) return 'the words before a program that reads the value cannot be followed';
  const name = words[at];
  if (name === undefined || /^(for|case|select|\}|done|fi|esac|in|function)$/.test(name)) return undefined;
  const program = baseName(name);
  if (program === 'xargs') return judgeXargs(words, at);
  return readsData(words, at, facts)
    ? undefined
    : `'${program}' would be given the value on its standard input, and is not known to take that as data`;
}

function readsData(words: readonly string[], at: number, facts: ScriptFacts): boolean {
  const name = words[at] ?? '';
  const program = baseName(name);
  if (facts.functions.has(name)) return !facts.evaluatesText;
  if (READERS.has(program) || PLAIN.has(program) || program === 'printf') return true;
  if (program === 'awk' || program === 'sed' || program === 'jq') return filterFault(words, at) === undefined;
  if (isOwnProgram(words, at) || scriptIndex(words, at) !== undefined) return true;
  const found = formOf(words, at);
  if (found?.form.runsAfter !== undefined) {
    const inner = innerCommand(words, found.next, found.form);
    return inner !== undefined && inner < words.length && readsData(words, inner, facts);
  }
  return found?.form.input === true;
}

/** `xargs` makes arguments of what it reads, and no check can stand before them. */
function judgeXargs(words: readonly string[], at: number): string | undefined {
  let index = at + 1;
  for (; (words[index] ?? '').startsWith('-'); index++) {
    if (/^-[nPLI]$/.test(words[index] ?? '')) index += 1;
    else if (!/^-([0rt]+|[nPLI].+|d.+)$/.test(words[index] ?? '')) return `the options of 'xargs' cannot be followed`;
  }
  const program = baseName(words[index] ?? 'echo');
  return PLAIN.has(program) && program !== 'test' && program !== '['
    ? undefined
    : `'xargs' would give the value to '${program}' as arguments, which are not known to be data there`;
}

function judgeWords(words: readonly string[], at: number, use: ExpressionInCommand, facts: ScriptFacts): Verdict {
  const name = words[at] ?? '';
  const program = baseName(name);
  if (/^(for|select|case|function|export|readonly|local)$/.test(name)) return DATA;
  if (facts.functions.has(name))
    return facts.evaluatesText
      ? refused(
          `the function '${name}' is in a script that evaluates text, so what it does with the value is not known`,
        )
      : DATA;
  if (program === '[' || program === 'test') return judgeTest(words, at, use);
  if (program === 'printf') return judgePrintf(words, at, use);
  if (PLAIN.has(program)) return DATA;
  if (program === 'awk' || program === 'sed' || program === 'jq') return judgeFilter(words, at, use);
  if (isOwnProgram(words, at)) return namesInterpreter(words, at, use);
  const script = scriptIndex(words, at);
  if (script !== undefined) return use.word > script ? DATA : refused(`the value would choose what '${program}' runs`);
  const found = formOf(words, at);
  if (found !== undefined) return judgeForm(words, found.next, found.form, use, facts, program);
  return refused(
    isInterpreter(program)
      ? `'${program}' runs what it is given`
      : Object.hasOwn(TOOLS, program)
        ? `this form of '${program}' is not known to take a value as data`
        : `'${program}' is not known to take a value as data`,
  );
}

/** A program that lies in the project: its arguments are its own affair. */
function isOwnProgram(words: readonly string[], at: number): boolean {
  const name = words[at] ?? '';
  return /^[A-Za-z0-9_.@-]+\/[A-Za-z0-9_./@+-]*$/.test(name) && !isKnown(baseName(name));
}

function isKnown(program: string): boolean {
  return isInterpreter(program) || Object.hasOwn(TOOLS, program) || Object.hasOwn(PREFIXES, program);
}

function namesInterpreter(words: readonly string[], at: number, use: ExpressionInCommand): Verdict {
  const named = words.slice(at + 1, use.word).find((word) => isInterpreter(baseName(word)));
  return named === undefined ? DATA : refused(`the command names '${named}', which runs what it is given`);
}

const SCRIPT_FILE = /^(\.\/)?[A-Za-z0-9_][A-Za-z0-9_./@-]*\.(sh|bash|ksh|zsh|py|js|mjs|cjs|ts|rb|pl|php|lua|R)$/;

/** The script that an interpreter is given to run, where that is a file of the project and everything behind it is the file's. */
function scriptIndex(words: readonly string[], at: number): number | undefined {
  const program = baseName(words[at] ?? '');
  if (!/^(sh|bash|dash|ash|zsh|ksh|python[0-9.]*|node|ruby|perl|php|lua|Rscript)$/.test(program)) return undefined;
  let index = at + 1;
  while (/^-([eux]+|B)$/.test(words[index] ?? '') && isShellOrPython(program, words[index] ?? '')) index += 1;
  return SCRIPT_FILE.test(words[index] ?? '') ? index : undefined;
}

function isShellOrPython(program: string, option: string): boolean {
  return program.startsWith('python') ? option === '-u' || option === '-B' : program.endsWith('sh') && option !== '-B';
}

/** The form that holds for a tool's verb, and the word behind the verb. */
function formOf(
  words: readonly string[],
  at: number,
): { readonly form: CommandForm; readonly next: number } | undefined {
  const program = baseName(words[at] ?? '');
  if (!Object.hasOwn(TOOLS, program)) return undefined;
  const tool = TOOLS[program];
  if (tool === undefined) return undefined;
  const plain = tool.verbs[''];
  if (plain !== undefined) return { form: plain, next: at + 1 };
  let index = at + 1;
  const globals = listed(tool.globals);
  for (; (words[index] ?? '').startsWith('-'); index++) {
    const word = words[index] ?? '';
    if (globals.has(word)) index += 1;
    else if (!globals.has(word.split('=')[0] ?? '') || word.includes(EXPRESSION_MARK)) return undefined;
  }
  const first = words[index] ?? '';
  const behind = /^--(global|local)$/.test(words[index + 1] ?? '') ? index + 2 : index + 1;
  const second = words[behind] ?? '';
  for (const [verb, next] of [
    [`${first} ${second}`, behind + 1],
    [first, index + 1],
  ] as const) {
    const form = Object.hasOwn(tool.verbs, verb) ? tool.verbs[verb] : undefined;
    if (form !== undefined) return { form, next };
  }
  return undefined;
}

function judgeForm(
  words: readonly string[],
  from: number,
  form: CommandForm,
  use: ExpressionInCommand,
  facts: ScriptFacts,
  program: string,
): Verdict {
  if (use.word < from) return refused(`the value would choose what '${program}' does`);
  if (form.strict === true) {
    const inner = innerCommand(words, from, form);
    if (inner === undefined) return refused(`an option of '${program}' is not known to leave a value as data`);
    if (form.runsAfter !== undefined && use.word >= inner) {
      if (use.word === inner) return refused('the value would choose the program to run');
      return judgeWords(words, inner, use, facts);
    }
  }
  const word = words[use.word] ?? '';
  const before = textBefore(word, use);
  const { option, isBefore } = optionOf(words, from, use.word, before, form);
  if (option !== undefined && !takesValue(form, option))
    return refused(`the option '${option}' of '${program}' is not known to take a value as data`);
  if (before !== '' && option !== undefined && !isBefore) return DATA;
  if (option === undefined) {
    if (form.operands === 'none') return refused(`'${program}' is not known to take a value there as data`);
    if (form.operands === 'prefixed' && !isPrefix(before))
      return refused(`the value would choose what '${program}' runs`);
    if (words.slice(from, use.word).includes('--')) return DATA;
  }
  if (form.archive === true && !/^[^-$`*?[{~][^$`]*\//.test(before))
    return splitting(use, program, { check: 'archive' });
  return isPrefix(before) ? DATA : splitting(use, program, NO_OPTION);
}

function splitting(use: ExpressionInCommand, program: string, otherwise: Verdict): Verdict {
  return use.splits === true || use.nested
    ? refused(
        `what '$( )' prints could be taken for an option of '${program}'; write text before it, or give it a name`,
      )
    : otherwise;
}

/** The option whose value a word is, and whether it stands in the word before it. */
function optionOf(
  words: readonly string[],
  from: number,
  index: number,
  before: string,
  form: CommandForm,
): { readonly option: string | undefined; readonly isBefore: boolean } {
  if (before.startsWith('-')) return { option: attachedOption(before, form), isBefore: false };
  const previous = index > from ? (words[index - 1] ?? '') : '';
  const isOption = /^-./.test(previous) && previous !== '--' && !previous.includes('=');
  return { option: isOption ? valueOption(previous, form) : undefined, isBefore: true };
}

/** `--tag=…`, `-t…`; the whole text where it is neither, which no form lists. */
function attachedOption(before: string, form: CommandForm): string {
  const long = /^(--[A-Za-z0-9][A-Za-z0-9-]*)=/.exec(before)?.[1];
  if (long !== undefined) return long;
  const short = before.slice(0, 2);
  if (/^-[A-Za-z]$/.test(short) && (before.length === 2 || listed(form.values).has(short))) return short;
  return /^(-[A-Za-z][A-Za-z-]*)=/.exec(before)?.[1] ?? ILLEGIBLE;
}

/** The option before a word, undefined where it takes no value. In a cluster such as `-am` the last letter takes it. */
function valueOption(previous: string, form: CommandForm): string | undefined {
  const values = listed(form.values);
  if (values.has(previous)) return previous;
  if (form.flags?.test(previous) === true) return undefined;
  if (!/^-[A-Za-z]{2,}$/.test(previous) || isLongWithOneDash(form)) return previous;
  const last = `-${previous.at(-1) ?? ''}`;
  const others = [...previous.slice(1, -1)].every((letter) => form.flags?.test(`-${letter}`) === true);
  if (form.values === '*') return last;
  return others && values.has(last) ? last : ILLEGIBLE;
}

/** Programs such as `find`, whose options are words behind one dash. */
function isLongWithOneDash(form: CommandForm): boolean {
  return [...listed(form.values)].some((name) => /^-[a-z]{3,}$/.test(name));
}

function takesValue(form: CommandForm, option: string): boolean {
  if (listed(form.never).has(option) || option === ILLEGIBLE) return false;
  return form.values === '*' || listed(form.values).has(option);
}

/** Where the command begins that a command runs, `words.length` where there is none; undefined behind an unknown option. */
function innerCommand(words: readonly string[], from: number, form: CommandForm): number | undefined {
  const values = listed(form.values);
  let operands = 0;
  for (let index = from; index < words.length; index++) {
    const word = words[index] ?? '';
    if (form.runsAfter !== undefined && operands === form.runsAfter) return index;
    const isFlag = form.flags?.test(word) === true;
    const cluster = /^-[A-Za-z]{2,}$/.test(word) && values.has(`-${word.at(-1) ?? ''}`) && form.runsAfter === undefined;
    if (word === '--' || (isFlag && word.startsWith('-') && !cluster)) continue;
    if (cluster) {
      if (form.flags?.test(word.slice(0, -1)) !== true && word.length > 2) return undefined;
      index += 1;
    } else if (values.has(word)) index += 1;
    else if (/^-./.test(word)) {
      if (!values.has(word.split('=')[0] ?? '') && !values.has(word.slice(0, 2))) return undefined;
    } else operands += 1;
  }
  return words.length;
}

/** Text before a value that keeps the word from beginning with what the value begins with. */
/** The text of the word before the value, or before the `$( )` that it stands in. */
function textBefore(word: string, use: ExpressionInCommand): string {
  return use.nested ? word.slice(0, Math.max(0, word.search(/[$<>]\(/))) : word.slice(0, word.indexOf(EXPRESSION_MARK));
}

function isPrefix(before: string): boolean {
  return /^[^-$`*?[{~+@][^$`]*$/.test(before);
}

const TEST_BINARY = new Set(['=', '==', '!=', '<', '>', '-nt', '-ot', '-ef']);
const TEST_UNARY = /^-[bcdefghnprstuwxzLSGNOk]$/;

/** A test whose operator a value could be, or whose number of operands leaves it open, may be computed. */
function judgeTest(words: readonly string[], at: number, use: ExpressionInCommand): Verdict {
  let operands = words.slice(at + 1, words[at] === '[' ? -1 : undefined);
  let first = at + 1;
  if (operands[0] === '!' && operands.length > 1) {
    operands = operands.slice(1);
    first += 1;
  }
  const place = use.word - first;
  const fits =
    use.splits !== true &&
    ((operands.length === 1 && place === 0) ||
      (operands.length === 2 && place === 1 && TEST_UNARY.test(operands[0] ?? '')) ||
      (operands.length === 3 && place !== 1 && TEST_BINARY.has(operands[1] ?? '')));
  return fits
    ? DATA
    : refused(
        "such a test could take the value for an operator; write '[ a = b ]', '[ -n a ]' or '[[ … ]]', quoted, and join tests by '&&' and '||'",
      );
}

/** Where a format asks for numbers, some shells compute the arguments. */
function judgePrintf(words: readonly string[], at: number, use: ExpressionInCommand): Verdict {
  const first = words[at + 1] === '--' ? at + 2 : at + 1;
  const format = words[first] ?? '';
  if (use.word === first) {
    if (words.slice(first + 1).some((word) => word.includes(EXPRESSION_MARK)))
      return refused("the value would be the format of 'printf' for another value; write printf '%s' …");
    return isPrefix(textBefore(format, use)) ? DATA : splitting(use, 'printf', NO_OPTION);
  }
  return /^([^%$`]|%%|%-?[0-9]*(\.[0-9]+)?[sbq])*$/.test(format) && !format.startsWith('-')
    ? DATA
    : refused("'printf' would compute the value; use %s");
}

const AWK_RUNS = /\bsystem\b|getline|[|@`]/;
const SED_COMMAND =
  /^([0-9$,]*|\/[^/\\]*\/)[dpq]?$|^s([/|#,:])(?:(?!\2)[^\\\n]|\\.)*\2(?:(?!\2)[^\\\n]|\\.)*\2[gpI0-9]*$/;

/** Why the program of a filter could run something. A program that is a file of the project is its own affair. */
function filterFault(words: readonly string[], at: number): string | undefined {
  const program = baseName(words[at] ?? '');
  const { code, options } = filterWords(words, at);
  if (code.some((text) => /[$`]\(|`/.test(text)) && program !== 'awk')
    return `the program of '${program}' is made by another command`;
  if (options.length > 0)
    return `the option '${options[0] ?? ''}' of '${program}' is not known to leave a value as data`;
  if (program === 'awk' && code.some((text) => AWK_RUNS.test(text)))
    return "a program of 'awk' with 'system', 'getline', '|' or '@' could run the value";
  if (program === 'sed' && !code.every((text) => text.split(/[;\n]/).every((part) => SED_COMMAND.test(part.trim()))))
    return "this program of 'sed' is not simple enough to be sure that it runs nothing";
  return undefined;
}

const FILTER_FLAGS: Readonly<Record<string, RegExp>> = {
  awk: /^--posix$/,
  sed: /^(-[nErsuz]+|-i.*|--in-place|--quiet|--regexp-extended)$/,
  jq: /^(-[rRncCSesj]+|--(raw-output|raw-input|null-input|compact-output|slurp|exit-status|tab|join-output|sort-keys))$/,
};

/** The program texts of a filter, where its other operands begin, and options that are not known. */
function filterWords(
  words: readonly string[],
  at: number,
): {
  readonly code: readonly string[];
  readonly codeAt: ReadonlySet<number>;
  readonly data: ReadonlySet<number>;
  readonly options: readonly string[];
} {
  const program = baseName(words[at] ?? '');
  const code: string[] = [];
  const codeAt = new Set<number>();
  const data = new Set<number>();
  const options: string[] = [];
  let hasProgram = false;
  const take = (index: number): void => {
    code.push(words[index] ?? '');
    codeAt.add(index);
    hasProgram = true;
  };
  for (let index = at + 1; index < words.length; index++) {
    const word = words[index] ?? '';
    if (program === 'sed' && word === '-e') take((index += 1));
    else if (program === 'awk' && word === '-F') index += 1;
    else if (program === 'awk' && word === '-v') data.add((index += 1));
    else if (program === 'jq' && /^--(arg|argjson)$/.test(word)) {
      data.add(index + 2);
      index += 2;
    } else if (!hasProgram && /^-./.test(word)) {
      if (FILTER_FLAGS[program]?.test(word) !== true && !(program === 'awk' && word.startsWith('-F')))
        options.push(word);
    } else if (!hasProgram) take(index);
    else if (/^-./.test(word) && FILTER_FLAGS[program]?.test(word) !== true) options.push(word);
    else if (!word.startsWith('-')) data.add(index);
  }
  return { code, codeAt, data, options };
}

function judgeFilter(words: readonly string[], at: number, use: ExpressionInCommand): Verdict {
  const program = baseName(words[at] ?? '');
  const { codeAt, data } = filterWords(words, at);
  if (codeAt.has(use.word)) return refused(`'${program}' reads this argument as code`);
  const fault = filterFault(words, at);
  if (fault !== undefined) return refused(fault);
  if (!data.has(use.word)) return refused(`'${program}' is not known to take a value there as data`);
  const word = words[use.word] ?? '';
  return isPrefix(textBefore(word, use)) ? DATA : splitting(use, program, NO_OPTION);
}

function refused(refusal: string): Verdict {
  return { refusal };
}

const lists = new Map<string, ReadonlySet<string>>();

function listed(names: string | undefined): ReadonlySet<string> {
  const text = names ?? '';
  const known = lists.get(text) ?? new Set(text.split(' ').filter((name) => name !== ''));
  lists.set(text, known);
  return known;
}
