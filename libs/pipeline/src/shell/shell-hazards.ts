/**
 * Where a value that is safely quoted would still become code, because the command that receives it reads its arguments
 * as code: `eval`, `sh -c`, arithmetic, array subscripts, `awk` and `sed` programs and the like. The rules are about
 * words, the scanner has dealt with the quoting. In doubt an expression is refused: the way through `env:` is always open.
 */

import { isCodeVariable } from './code-variables.ts';
import {
  ASSIGNMENT,
  baseName,
  commandIndex,
  EXPRESSION_MARK,
  INPUT,
  interpreterOf,
  OUTPUT,
  READ_AS_CODE,
  runsItsInput,
  SHELLS,
} from './shell-words.ts';
import type { ExpressionInCommand, Interpreter, SimpleCommand } from './shell-words.ts';
import { judgeArgument, judgeInput } from './receivers.ts';
import type { ScriptFacts as ReceiverFacts, Verdict } from './receivers.ts';

/** What is known of the whole script. */
export interface ScriptFacts extends ReceiverFacts {
  readonly integersDeclared: boolean;
  readonly shell: string;
}

/** Tests that some shell computes: an operand `a[$(id)]` would run `id`. */
const EVALUATING_TEST = new Set(['-eq', '-ne', '-lt', '-le', '-gt', '-ge', '-v', '-R']);

const INTEGER_DECLARATION =
  /\b(?:declare|typeset|local|export|readonly)\b[^\n;]*\s[-+][A-Za-z]*[inEF]|(?:^|[\s;])(?:integer|float)\s/;

/** Whether a script declares integer or reference variables anywhere: what is assigned to one of those is computed. */
export function declaresIntegers(script: string): boolean {
  return INTEGER_DECLARATION.test(script);
}

const EVALUATION =
  /\b(eval|source|trap|bash|dash|zsh|ksh|sh|python[0-9.]*|perl|ruby|node|php|awk|sed|xargs|ssh|su|sudo|env|let|declare|typeset|integer|make|unset|printf)\b|\(\(|\$\[|\s-(eq|ne|lt|le|gt|ge|v)\s|(^|[\s;&|({])\.\s|`/;

/** Whether a script has anything by which a function of it could run its arguments. */
export function evaluatesText(script: string): boolean {
  return EVALUATION.test(script);
}

/** What is known of the value of an expression, by its index in the script. */
export interface Values {
  /** It comes from outside. */
  isOpen(index: number): boolean;
  /** It is a whole number: in whatever argument it stands, it is the same as data and as code. */
  isNumber(index: number): boolean;
}

/** Calls `judged` for each expression of the command that its receiver would read as code, or that must be checked. */
export function judgeCommand(
  command: SimpleCommand,
  facts: ScriptFacts,
  { isOpen, isNumber }: Values,
  judged: (index: number, verdict: Verdict) => void,
): void {
  if (command.expressions.length === 0) return;
  const at = commandIndex(command.words);
  for (const expression of command.expressions) {
    if (isNumber(expression.index) && expression.word > at) continue;
    const refusal = hazardOf(command.words, at, expression, facts);
    if (refusal !== undefined) judged(expression.index, { refusal });
    else if (isOpen(expression.index)) judged(expression.index, verdictOn(command, expression, facts));
  }
}

function verdictOn({ words, closes }: SimpleCommand, use: ExpressionInCommand, facts: ScriptFacts): Verdict {
  if (use.word === OUTPUT) return {};
  if (use.word !== INPUT) return judgeArgument(words, use, facts);
  for (const reader of closes?.members ?? [words]) {
    const refusal = judgeInput(reader, facts);
    if (refusal !== undefined) return { refusal };
  }
  return {};
}

function hazardOf(
  words: readonly string[],
  at: number,
  expression: ExpressionInCommand,
  facts: ScriptFacts,
): string | undefined {
  const name = baseName(words[at] ?? '');
  if (expression.word === OUTPUT) return undefined;
  if (expression.word === INPUT)
    return runsItsInput(words) || READ_AS_CODE.has(name) ? `'${name}' would read the value as code` : undefined;
  const word = words[expression.word] ?? '';
  if (expression.word < at) return assignmentHazard(word, facts, false);
  if (expression.word === at) return 'the value would choose the program to run';
  if (isComputedName(words[at] ?? ''))
    return 'the program is named by an expansion or a pattern, so what it does with the value is not known';
  if (name === 'for' || name === 'select' || name === 'function') {
    return expression.word === at + 1 ? `the value would be a name that '${name}' defines` : undefined;
  }
  if (READ_AS_CODE.has(name)) return `'${name}' reads its arguments as code or as arithmetic`;
  if (name === 'export' || name === 'readonly' || name === 'local')
    return declarationHazard(words, at, word, facts, name);
  if (name === '[' || name === '[[' || name === 'test') {
    return words.some((other) => EVALUATING_TEST.has(other))
      ? 'a shell may compute the operands of such a test, and run commands in them'
      : undefined;
  }
  return shellHazard(words, at, expression.word) ?? interpreterHazard(words, at, expression.word, name);
}

function assignmentHazard(word: string, facts: ScriptFacts, isInteger: boolean): string | undefined {
  const target = ASSIGNMENT.exec(word);
  if (target === null) return 'the value would choose the program to run';
  if (target[2]?.includes(EXPRESSION_MARK) === true)
    return 'an array subscript is computed, and commands in it are run';
  if (isCodeVariable(target[1] ?? '', facts.shell))
    return `'${target[1] ?? ''}' is a variable whose text is taken as code`;
  return facts.integersDeclared || isInteger
    ? 'this script declares integer or reference variables, and what is assigned to one is computed'
    : undefined;
}

function declarationHazard(
  words: readonly string[],
  at: number,
  word: string,
  facts: ScriptFacts,
  name: string,
): string | undefined {
  if (!ASSIGNMENT.test(word)) return `'${name}' takes the value for a name`;
  return assignmentHazard(
    word,
    facts,
    words.slice(at + 1).some((other) => /^[-+][A-Za-z]*[in]/.test(other)),
  );
}

/** `sh -c` wherever it stands in the command (`docker exec x sh -c …`), and the script that a shell is given to run. */
function shellHazard(words: readonly string[], at: number, expressionWord: number): string | undefined {
  const isShell = (word: string | undefined): boolean => SHELLS.has(baseName(word ?? ''));
  const first = words.findIndex((word, index) => index >= at && index < expressionWord && isShell(word));
  if (first === -1) return undefined;
  // What stands behind any shell stands behind the first.
  if (words.slice(first + 1, expressionWord + 1).some((word) => /^(-[A-Za-z]*c|--command|-Command)/.test(word)))
    return `'${baseName(words[first] ?? '')} -c' reads its arguments as code`;
  // Nothing but options stands between a shell and the value: no other word is behind it. It may stand in an option itself.
  const last = words.findLastIndex((word, index) => index < expressionWord && !/^[-+]/.test(word));
  for (let index = first; index < expressionWord; index++) {
    const name = baseName(words[index] ?? '');
    if (name === 'busybox' || (index >= last && isShell(name)))
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
  /** By interpreter, where the last of its options that take code stands. */
  const lastFlags = new Map<Interpreter, number>();
  const lastFlagOf = (known: Interpreter): number => {
    let last = lastFlags.get(known);
    if (last === undefined)
      lastFlags.set(
        known,
        (last = words.findLastIndex((word, index) => index <= expressionWord && known.flag.test(word))),
      );
    return last;
  };
  for (let index = at; index < expressionWord; index++) {
    const program = baseName(words[index] ?? '');
    const known = interpreterOf(program);
    if (known === undefined) continue;
    if (index < lastFlagOf(known)) return `'${program}' reads this argument as code`;
    if (index !== at || known.operand !== true) continue;
    // `awk -v name=value` is data; the first word that is neither an option nor an option's value is the program.
    const between = words.slice(index + 1, expressionWord + 1);
    const operand = between.findIndex(
      (word, offset) => !word.startsWith('-') && !/^-[vFf]$/.test(between[offset - 1] ?? ''),
    );
    if (operand === between.length - 1)
      return `'${name}' reads this argument as code, or as the name of the program to run`;
  }
  return undefined;
}

/** A name that the shell makes out of something else: `$x`, `l[e]t`, `{eval,x}`. */
export function isComputedName(word: string): boolean {
  return word !== '[' && word !== '[[' && /[$`*?[{]/.test(word);
}
