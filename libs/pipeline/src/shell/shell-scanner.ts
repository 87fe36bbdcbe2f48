/**
 * Follows a script through the shell's quoting and writes each `${{ }}` as a reference to an environment variable,
 * quoted for the place it stands in. The value never becomes part of the text that the shell parses.
 *
 * SHELL-1. What is written is a plain parameter expansion, and the result of one is not scanned for commands again. So even
 *    where this scanner read the quoting otherwise than some shell does, a value could be split into words there, but
 *    not become a command.
 * SHELL-2. Places where a shell evaluates the result once more (arithmetic, subscripts, `eval`) are refused, here by their
 *    syntax and in `shell-hazards.ts` by the command that receives it.
 * SHELL-3. Where the quoting cannot be followed with certainty in every supported shell, the scanner is `lost`, and every
 *    expression of the script is refused.
 */
import { findBodyEnd, readDelimiter } from './here-document.ts';
import type { Delimiter } from './here-document.ts';
import { ReferenceWriter } from '../text/reference-writer.ts';
import type { Place } from '../text/reference-writer.ts';
import { ShellFrame } from './shell-frame.ts';
import type { ShellFrameListener } from './shell-frame.ts';
import type { CommandLine } from './command-line.ts';
import type { BoundExpression } from './bound-expression.ts';
import { checksOf } from './option-check.ts';
import type { CheckedValue } from './option-check.ts';
import { judgeInput, printsEnvironment } from './receivers.ts';
import type { Verdict } from './receivers.ts';
import { declaresIntegers, evaluatesText, isComputedName, judgeCommand } from './shell-hazards.ts';
import type { ScriptFacts } from './shell-hazards.ts';
import { baseName, commandIndex, EXPRESSION_MARK, INPUT, OUTPUT, runsItsInput } from './shell-words.ts';
import type { SimpleCommand } from './shell-words.ts';

export interface Substitution {
  readonly script: string;
  /** Why an expression, by its index in the script, cannot stand where it does. */
  readonly refusals: ReadonlyMap<number, string>;
}

/** Replaces the marks of a script by references to variables, one expression for each mark in order. */
export function bindExpressions(script: string, expressions: readonly BoundExpression[], shell: string): Substitution {
  return new ShellScanner(script, expressions, baseName(shell)).scan();
}

interface HereDocument {
  readonly delimiter: Delimiter;
  readonly level: number;
  readonly command: SimpleCommand;
  readonly line: CommandLine;
  readonly position: number;
}

const LEVELS_MAX = 40;
const IN_ARITHMETIC = 'it stands in arithmetic, which is computed';
/** Shells that know `$'…'`; for the others, and for `sh`, which may be either, it can end elsewhere. */
const CONDITIONAL_SHELLS = new Set(['bash', 'zsh', 'ksh']);
const ANSI_QUOTE_SHELLS = new Set(['bash', 'zsh', 'ksh']);
const ORDINARY = /[A-Za-z0-9_.,:=@%+~^/-]+/y;
const ORDINARY_IN_QUOTES = /[^"\\$`\uFFFF]+/y;

class ShellScanner implements ShellFrameListener {
  readonly #text: string;
  readonly #writer: ReferenceWriter;
  readonly #expressions: readonly BoundExpression[];
  readonly #shell: string;
  readonly #functions = new Set<string>();
  readonly #lines: CommandLine[] = [];
  /** Commands that hold expressions, to be judged when the whole script is known. */
  readonly #judged = new Set<SimpleCommand>();
  readonly #checks = new Map<string, CheckedValue>();
  #hereDocuments: HereDocument[] = [];
  #at = 0;
  /** The end of what is being scanned: the text's, or a here-document's. */
  #end: number;
  #level = 0;
  #lost: string | undefined;
  /** Why no expression can stand in the construct being scanned. */
  #refusing: string | undefined;
  #evaluatesText: boolean;

  constructor(text: string, expressions: readonly BoundExpression[], shell: string) {
    this.#shell = shell;
    this.#text = text;
    this.#expressions = expressions;
    this.#writer = new ReferenceWriter(
      text,
      expressions.map(({ name }) => name),
    );
    this.#end = text.length;
    this.#evaluatesText = evaluatesText(text);
  }

  scan(): Substitution {
    this.#commands(new ShellFrame(this, false), undefined);
    if (this.#lost === undefined && this.#hereDocuments.length > 0)
      this.lose('a here-document in this script has no body');
    if (this.#text.split(EXPRESSION_MARK).length - 1 > this.#writer.index)
      this.lose('the quoting of this script cannot be followed');
    if (this.#lost === undefined) this.#judgeAll();
    else this.#writer.refuseAll(this.#lost);
    return { script: checksOf([...this.#checks.values()]) + this.#writer.script(), refusals: this.#writer.refusals };
  }

  /** Judges what receives a value: commands in their words, and those behind pipes. */
  #judgeAll(): void {
    const facts: ScriptFacts = {
      functions: this.#functions,
      evaluatesText: this.#evaluatesText,
      integersDeclared: declaresIntegers(this.#text),
      shell: this.#shell,
    };
    const isOpen = (index: number): boolean => this.#expressions[index]?.isOpen === true;
    const isNumber = (index: number): boolean => this.#isNumber(index);
    for (const command of this.#judged)
      judgeCommand(command, facts, { isOpen, isNumber }, (index, verdict) => this.#follow(index, verdict));
    for (const line of this.#lines) {
      for (const words of line.readers())
        if (runsItsInput(words))
          this.#writer.refuseAll('this script pipes text into an interpreter, which would run it');
      for (const words of line.readersBehind(printsEnvironment)) {
        const refusal = judgeInput(words, facts);
        if (refusal === undefined) continue;
        for (const index of this.#expressions.keys())
          if (isOpen(index))
            this.refuse(index, `this script prints its variables, the value among them, and ${refusal}`);
      }
      for (const { words, indexes } of line.flows()) {
        const refusal = judgeInput(words, facts);
        if (refusal === undefined) continue;
        for (const index of indexes()) if (isOpen(index)) this.refuse(index, refusal);
      }
    }
  }

  #follow(index: number, { refusal, check }: Verdict): void {
    const expression = this.#expressions[index];
    if (refusal !== undefined) this.refuse(index, refusal);
    if (check === undefined || expression === undefined) return;
    const { name, source } = expression;
    if (this.#checks.get(name)?.check !== 'archive') this.#checks.set(name, { name, source, check });
  }

  /** Scans commands up to the closing parenthesis, or to the end where there is none to come. */
  #commands(frame: ShellFrame, close: ')' | undefined): void {
    this.#level += 1;
    if (this.#level > LEVELS_MAX) this.lose('the script is nested too deeply');
    while (this.#lost === undefined) {
      if (this.#at >= this.#end && close === undefined) {
        frame.endCommand(false, true);
        break;
      }
      const character = this.#inside("a '(' of this script is not closed");
      if (character === ')' && !frame.conditional && !frame.inPattern) {
        if (close === undefined) this.lose("a ')' of this script closes nothing");
        frame.endCommand(false, true);
        if (this.#hereDocuments.some((document) => document.level === this.#level))
          this.lose('a here-document begins inside parentheses that close before its body');
        this.#at += 1;
        break;
      }
      if (this.#at < this.#end) this.#step(frame, character);
    }
    this.#level -= 1;
  }

  #step(frame: ShellFrame, character: string): void {
    if (frame.conditional && '();&|<>'.includes(character)) {
      // Operators and parentheses of `[[ ]]`: they end a word there and nothing else, where the shell has it; to others it is a program.
      if (!CONDITIONAL_SHELLS.has(this.#shell))
        this.lose("an operator within '[[ ]]' ends the command for some shells; write '[ … ]', or shell: bash");
      frame.endWord();
      this.#at += 1;
      return;
    }
    switch (character) {
      case EXPRESSION_MARK:
        return this.#expression(frame, 'plain');
      case '\\':
        return this.#escape(frame);
      case "'":
        return this.#single(frame);
      case '"':
        return this.#double(frame);
      case '`':
        return this.#backtick(frame);
      case '$':
        return this.#dollar(frame, false);
      case '#':
        if (frame.word === undefined) this.#comment();
        else this.#ordinary(frame, character);
        return;
      case ' ':
      case '\t':
        frame.endWord();
        this.#at += 1;
        return;
      case '\n':
        return this.#newline(frame);
      case ';':
      case '&':
      case '|':
        return this.#separator(frame, character);
      case '<':
      case '>':
        return this.#redirection(frame, character);
      case '(':
        return this.#parenthesis(frame);
      case ')':
        // The end of a pattern of `case`; any other has ended the commands.
        frame.endWord();
        frame.turnCase('body');
        this.#at += 1;
        return;
      default: {
        ORDINARY.lastIndex = this.#at;
        const run = ORDINARY.exec(this.#text)?.[0] ?? character;
        this.#ordinary(frame, run.slice(0, this.#end - this.#at));
      }
    }
  }

  #ordinary(frame: ShellFrame, text: string): void {
    frame.append(text);
    this.#at += text.length;
  }

  /** Notes the expression at the present place as part of the frame's current word, and writes its reference. */
  #expression(frame: ShellFrame, place: Place): void {
    frame.addExpression(this.#writer.index, false, false);
    frame.append(EXPRESSION_MARK);
    this.#place(place);
  }

  #place(place: Place): void {
    const { index } = this.#writer;
    const reason = this.#lost ?? this.#refusing;
    const isComputed = reason === IN_ARITHMETIC && this.#isNumber(index);
    if (reason !== undefined && !isComputed) this.refuse(index, reason);
    this.#writer.write(this.#at, place);
    this.#at += 1;
  }

  #isNumber(index: number): boolean {
    return this.#expressions[index]?.isNumber === true;
  }

  refuse(index: number, reason: string): void {
    this.#writer.refuse(index, reason);
  }

  lose(reason: string): void {
    this.#lost ??= reason;
  }

  #within(reason: string, scan: () => void): void {
    const outer = this.#refusing;
    this.#refusing ??= reason;
    this.#level += 1;
    if (this.#level > LEVELS_MAX) this.lose('the script is nested too deeply');
    else scan();
    this.#level -= 1;
    this.#refusing = outer;
  }

  /** The present character of a construct that must be closed before the end; there the script is lost, and it is empty. */
  #inside(reason: string): string {
    if (this.#at < this.#end) return this.#text[this.#at] ?? '';
    this.lose(reason);
    return '';
  }

  #escape(frame: ShellFrame): void {
    const next = this.#text[this.#at + 1];
    if (next === EXPRESSION_MARK) {
      this.#at += 1;
      this.#refusedExpression(frame, 'a backslash stands directly before it');
    } else if (next === '\n') {
      this.#at += 2;
    } else {
      // The word has the character alone: `\let` is `let`.
      frame.append(this.#text.slice(this.#at + 1, Math.min(this.#at + 2, this.#end)));
      this.#at += 2;
    }
  }

  #refusedExpression(frame: ShellFrame, reason: string): void {
    this.refuse(this.#writer.index, reason);
    this.#expression(frame, 'double');
  }

  #single(frame: ShellFrame): void {
    const close = this.#text.indexOf("'", this.#at + 1);
    if (close === -1 || close >= this.#end) {
      this.lose("a ' of this script is not closed");
      return;
    }
    frame.append('');
    this.#at += 1;
    this.#crossesLines(this.#at, close);
    while (this.#at < close) {
      if (this.#text[this.#at] === EXPRESSION_MARK) this.#expression(frame, 'single');
      else this.#ordinary(frame, this.#text[this.#at] ?? '');
    }
    this.#at = close + 1;
  }

  /** The shells differ in where a here-document begins whose line is continued inside quotes. */
  #crossesLines(from: number, to: number): void {
    if (this.#hereDocuments.length > 0 && this.#text.slice(from, to).includes('\n'))
      this.lose('quotes go over the line at which a here-document begins');
  }

  #double(frame: ShellFrame): void {
    const start = this.#at;
    this.#at += 1;
    frame.append('');
    while (this.#lost === undefined) {
      const character = this.#inside('a " of this script is not closed');
      if (character === '"') {
        this.#at += 1;
        this.#crossesLines(start, this.#at);
        return;
      }
      if (character === EXPRESSION_MARK) this.#expression(frame, 'double');
      else if (character === '\\') this.#escape(frame);
      else if (character === '`') this.#backtick(frame);
      else if (character === '$') this.#dollar(frame, true);
      else {
        ORDINARY_IN_QUOTES.lastIndex = this.#at;
        const run = ORDINARY_IN_QUOTES.exec(this.#text)?.[0] ?? character;
        this.#ordinary(frame, run.slice(0, this.#end - this.#at));
      }
    }
  }

  /** Everything that begins with `$`, in plain text or (`quoted`) in double quotes or a here-document. */
  #dollar(frame: ShellFrame, quoted: boolean): void {
    const next = this.#text[this.#at + 1];
    if (this.#at + 1 >= this.#end) this.#ordinary(frame, '$');
    else if (next === EXPRESSION_MARK) {
      this.#ordinary(frame, '$');
      this.#refusedExpression(frame, "a '$' stands directly before it");
    } else if (next === '(' && this.#text[this.#at + 2] === '(') this.#arithmetic(frame, 3);
    else if (next === '(') this.#substitution(frame, quoted);
    else if (next === '{') this.#parameter(frame, quoted);
    else if (next === '[') this.lose("after '$[' the shells read a script differently");
    else if (next === "'" && !quoted) this.#ansiQuote(frame);
    else if (next === '"' && !quoted) {
      this.#ordinary(frame, '$');
      this.#within('it stands inside $"…", which is translated', () => this.#double(frame));
    } else this.#ordinary(frame, '$');
  }

  /** `$( )`, `<( )` and `>( )`: commands of their own, whose output or name becomes part of the word. */
  #substitution(frame: ShellFrame, quoted: boolean): void {
    const from = this.#writer.index;
    const opening = this.#text.slice(this.#at, this.#at + 2);
    this.#ordinary(frame, opening);
    const inner = new ShellFrame(this, false, frame.line);
    this.#commands(inner, ')');
    if (opening === '>(') frame.line.addSink(inner.group);
    else if (frame.piped) frame.line.addReader(inner.group);
    for (let index = from; index < this.#writer.index; index++)
      frame.addExpression(index, true, opening === '$(' && !quoted);
  }

  #ansiQuote(frame: ShellFrame): void {
    let close = this.#at + 2;
    while (close < this.#end && this.#text[close] !== "'") {
      if (this.#text[close] === '\\') {
        if (!ANSI_QUOTE_SHELLS.has(this.#shell))
          this.lose("after $'…' with a backslash in it the shells read a script differently");
        close += 1;
      }
      close += 1;
    }
    if (close >= this.#end) this.lose("a $' of this script is not closed");
    this.#crossesLines(this.#at, close);
    frame.append('');
    this.#within("it stands inside $'…'", () => {
      while (this.#at < close && this.#lost === undefined) {
        if (this.#text[this.#at] === EXPRESSION_MARK) this.#expression(frame, 'double');
        else this.#ordinary(frame, this.#text[this.#at] ?? '');
      }
    });
    this.#at = close + 1;
  }

  /** `$(( ))` and `(( ))`: what stands there is computed, and a value such as `a[$(id)]` would be run. */
  #arithmetic(frame: ShellFrame, opening: number): void {
    this.#ordinary(frame, this.#text.slice(this.#at, this.#at + opening));
    this.#within(IN_ARITHMETIC, () => {
      let open = 0;
      while (this.#lost === undefined) {
        const character = this.#inside("a '((' of this script is not closed");
        if (character === EXPRESSION_MARK) this.#expression(frame, 'double');
        else if (character === '$') this.#dollar(frame, true);
        else if (character === '`') this.#backtick(frame);
        else if ('\'"\\'.includes(character))
          this.lose("after quotes inside '(( ))' the shells read a script differently");
        else if (character === ')' && open === 0) {
          if (this.#text[this.#at + 1] !== ')')
            this.lose("after '((' that is not closed by '))' the shells read a script differently");
          this.#at += 2;
          return;
        } else {
          if (character === '(') open += 1;
          if (character === ')') open -= 1;
          this.#at += 1;
        }
      }
    });
  }

  #parameter(frame: ShellFrame, quoted: boolean): void {
    if (/[\s|]/.test(this.#text[this.#at + 2] ?? '')) {
      this.lose("after '${ ' the shells read a script differently");
      return;
    }
    this.#ordinary(frame, '${');
    this.#within('it stands inside ${…}', () => {
      while (this.#lost === undefined) {
        const character = this.#inside("a '${' of this script is not closed");
        if (character === '}') {
          this.#at += 1;
          return;
        } else if (character === EXPRESSION_MARK) this.#expression(frame, 'double');
        else if (character === '\\') this.#escape(frame);
        else if (character === '`') this.#backtick(frame);
        else if (character === '$') this.#dollar(frame, quoted);
        else if (character === "'" && quoted) this.lose('after \' inside "${…}" the shells read a script differently');
        else if (character === "'") this.#single(frame);
        else if (character === '"') {
          const start = this.#at;
          this.#double(frame);
          if (quoted && this.#text.slice(start, this.#at).includes('}'))
            this.lose('after quotes inside "${…}" the shells read a script differently');
        } else this.#at += 1;
      }
    });
  }

  #backtick(frame: ShellFrame): void {
    this.#ordinary(frame, '`');
    this.#within('it stands inside backticks', () => {
      while (this.#lost === undefined) {
        const character = this.#inside('a ` of this script is not closed');
        if (character === '`') {
          this.#at += 1;
          return;
        } else if (character === EXPRESSION_MARK) this.#expression(frame, 'double');
        else this.#at += character === '\\' && this.#text[this.#at + 1] !== EXPRESSION_MARK ? 2 : 1;
      }
    });
  }

  /** Drops the expressions of a comment: nobody reads them. */
  #comment(): void {
    for (; this.#at < this.#end && this.#text[this.#at] !== '\n'; this.#at++)
      if (this.#text[this.#at] === EXPRESSION_MARK) this.#writer.drop(this.#at);
  }

  #newline(frame: ShellFrame): void {
    frame.endWord();
    const documents = this.#hereDocuments;
    this.#hereDocuments = [];
    this.#at += 1;
    if (documents.some((document) => document.level !== this.#level))
      this.lose('a here-document begins on a line that ends inside parentheses');
    if (!frame.conditional) frame.endCommand();
    for (const document of documents) if (this.#lost === undefined) this.#hereDocument(document);
  }

  #separator(frame: ShellFrame, character: string): void {
    frame.endWord();
    if (frame.array) {
      this.#at += 1;
      return;
    }
    const two = this.#text.slice(this.#at, this.#at + 2);
    if (two === '&>') {
      this.#at += this.#text[this.#at + 2] === '>' ? 3 : 2;
      frame.redirecting = OUTPUT;
      return;
    }
    if (frame.inPattern && character === '|') {
      this.#at += 1;
      return;
    }
    const isPipe = character === '|' && two !== '||';
    frame.endCommand(isPipe, true);
    if (two === ';;' || two === ';&' || two === ';|') {
      frame.turnCase('pattern');
      this.#at += this.#text.startsWith(';;&', this.#at) ? 3 : 2;
      return;
    }
    if (isPipe) frame.pipe();
    this.#at += two === '&&' || two === '||' || two === '|&' ? 2 : 1;
  }

  #redirection(frame: ShellFrame, character: string): void {
    if (this.#text[this.#at + 1] === '(') {
      this.#substitution(frame, true);
      return;
    }
    // The number of a descriptor is no word of the command.
    if (frame.word !== undefined && /^[0-9]+$/.test(frame.word)) frame.word = undefined;
    frame.endWord();
    if (character === '<' && this.#text.startsWith('<<', this.#at) && !this.#text.startsWith('<<<', this.#at)) {
      this.#hereDelimiter(frame);
      return;
    }
    const operator = /^(<<<|>>|>\||<>|>&|<&|>|<)/.exec(this.#text.slice(this.#at, this.#at + 3))?.[0] ?? character;
    this.#at += operator.length;
    frame.redirecting = operator.startsWith('<') ? INPUT : OUTPUT;
  }

  #hereDelimiter(frame: ShellFrame): void {
    const delimiter = readDelimiter(this.#text.slice(this.#at, this.#end));
    if (delimiter === undefined) {
      this.lose('the delimiter of a here-document cannot be read');
      return;
    }
    this.#hereDocuments.push({ delimiter, level: this.#level, ...frame.position });
    this.#at += delimiter.length;
  }

  #hereDocument(document: HereDocument): void {
    const { delimiter } = document;
    const end = findBodyEnd(this.#text, this.#at, this.#end, delimiter);
    if (end === undefined) {
      this.lose(`a here-document of this script is not closed by '${delimiter.text}'`);
      return;
    }
    const frame = new ShellFrame(this, false, document.line);
    frame.command = document.command;
    frame.redirecting = INPUT;
    const from = this.#writer.index;
    const outerEnd = this.#end;
    this.#end = end.body;
    while (this.#lost === undefined && this.#at < this.#end) {
      const character = this.#text[this.#at] ?? '';
      if (character === EXPRESSION_MARK && delimiter.quoted)
        this.#refusedExpression(frame, 'it stands in a here-document whose delimiter is quoted');
      else if (character === EXPRESSION_MARK) this.#expression(frame, 'double');
      else if (delimiter.quoted) this.#at += 1;
      else if (character === '\\') this.#escape(frame);
      else if (character === '$' && this.#text[this.#at + 1] !== EXPRESSION_MARK)
        this.#within('it stands inside $( ) in a here-document', () => this.#dollar(frame, true));
      else if (character === '$') this.#dollar(frame, true);
      else if (character === '`') this.#backtick(frame);
      else this.#at += 1;
    }
    this.#end = outerEnd;
    if (this.#lost === undefined) this.#at = end.next;
    for (let index = from; index < this.#writer.index; index++) document.line.addExpression(index, document.position);
    this.judge(document.command);
  }

  #parenthesis(frame: ShellFrame): void {
    const { word, atCommand } = frame;
    const empty = /^\([ \t]*\)/.exec(this.#text.slice(this.#at, this.#at + 10))?.[0];
    if (word !== undefined && /^[A-Za-z_][A-Za-z0-9_]*\+?=$/.test(word)) {
      this.#at += 1;
      this.#commands(new ShellFrame(this, true, frame.line), ')');
    } else if (empty !== undefined && !atCommand) {
      // `name ()` begins the definition of a function; what follows is a command.
      this.#at += empty.length;
      this.defines(word ?? frame.command.words.at(-1) ?? '');
      frame.word = undefined;
      frame.reset();
    } else if (
      this.#text[this.#at + 1] === '(' &&
      (atCommand || (word === undefined && frame.command.words.join(' ') === 'for'))
    ) {
      this.#arithmetic(frame, 2);
    } else if (frame.inPattern && word === undefined) {
      this.#at += 1;
    } else if (atCommand) {
      this.#at += 1;
      const inner = new ShellFrame(this, false, frame.line);
      this.#commands(inner, ')');
      frame.closeSubshell(inner.group);
    } else {
      this.lose("after a '(' inside a word the shells read a script differently");
    }
  }

  begins(line: CommandLine): void {
    this.#lines.push(line);
  }

  defines(name: string): void {
    this.#functions.add(name);
  }

  judge(command: SimpleCommand): void {
    if (command.expressions.length > 0) this.#judged.add(command);
    if (isComputedName(command.words[commandIndex(command.words)] ?? '')) this.#evaluatesText = true;
  }
}
