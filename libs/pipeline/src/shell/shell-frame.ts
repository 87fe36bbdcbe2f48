/**
 * One level of a script that is being scanned: the command being read and the words it has so far, and which of the
 * shell's constructs that change what a character means (`case`, `[[ ]]`, `name=( )`) it is in.
 */
import { CommandLine } from './command-line.ts';
import { commandIndex, OUTPUT, RESERVED } from './shell-words.ts';
import type { INPUT, SimpleCommand } from './shell-words.ts';

/** What a frame tells its scanner. */
export interface ShellFrameListener {
  /** A command is complete: its expressions can be judged. */
  judge(command: SimpleCommand): void;
  refuse(index: number, reason: string): void;
  /** From here on the script cannot be followed. */
  lose(reason: string): void;
  /** A command line begins: its pipes can be followed at the end. */
  begins(line: CommandLine): void;
  /** The script defines a function. */
  defines(name: string): void;
}

/** Words that begin what another of them ends; `case` and `esac` are seen to apart. */
const OPENING = new Set(['if', 'while', 'until', 'for', 'select', '{']);
const CLOSING = new Set(['fi', 'done', '}']);
const COMPOUNDS_MAX = 40;

export class ShellFrame {
  command: SimpleCommand = { words: [], expressions: [] };
  word: string | undefined;
  /** The next word belongs to a redirection of this kind. */
  redirecting: typeof INPUT | typeof OUTPUT | undefined;
  /** All commands of the level. */
  readonly group: CommandLine;
  /** The pipeline that is being read. */
  line: CommandLine;
  /** Inside `[[ ]]`, where `(`, `<` and `&&` do not end anything. */
  conditional = false;
  /** Inside `name=( )`. */
  readonly array: boolean;
  /** The command reads from a pipe. */
  piped = false;
  /** The lines around the compounds that are open, and whether each of those reads from a pipe. */
  readonly #compounds: { readonly line: CommandLine; readonly group: CommandLine; readonly piped: boolean }[] = [];
  /** What the lines of the innermost compound have around them. */
  #group: CommandLine;
  readonly #cases: ('subject' | 'pattern' | 'body')[] = [];
  readonly #listener: ShellFrameListener;

  constructor(listener: ShellFrameListener, array: boolean, outer?: CommandLine) {
    this.#listener = listener;
    this.array = array;
    this.group = new CommandLine(outer);
    this.#group = this.group;
    this.line = this.#nextLine();
  }

  /** Where the next character is part of a pattern of `case`. */
  get inPattern(): boolean {
    return this.#cases.at(-1) === 'pattern';
  }

  /** Where a here-document of the present command belongs. */
  get position(): { readonly command: SimpleCommand; readonly line: CommandLine; readonly position: number } {
    return { command: this.command, line: this.line, position: this.line.position };
  }

  /** Where a word that began here would name a program. */
  get atCommand(): boolean {
    return this.word === undefined && commandIndex(this.command.words) === this.command.words.length;
  }

  append(text: string): void {
    this.word = (this.word ?? '') + text;
  }

  /** Notes an expression as part of the current word. */
  addExpression(index: number, nested: boolean, splits: boolean): void {
    this.command.expressions.push({ index, word: this.redirecting ?? this.command.words.length, nested, splits });
    if (this.redirecting !== OUTPUT) this.line.addExpression(index);
  }

  reset(): void {
    this.command = { words: [], expressions: [] };
    this.redirecting = undefined;
  }

  /** A `|`: what follows reads from the command before it. */
  pipe(): void {
    this.line.pipe();
    this.piped = true;
  }

  /** The parentheses of a subshell have been read. */
  closeSubshell(group: CommandLine): void {
    if (this.piped) this.line.addReader(group);
    this.command.closes = group;
  }

  /** A pattern of `case` ends and its commands begin, or the other way round. */
  turnCase(state: 'pattern' | 'body'): void {
    if (this.#cases.length > 0) this.#cases[this.#cases.length - 1] = state;
    this.line = this.#nextLine();
    this.piped = false;
    this.reset();
  }

  endWord(): void {
    const { word } = this;
    if (word === undefined) return;
    this.word = undefined;
    if (this.redirecting !== undefined) {
      this.redirecting = undefined;
      return;
    }
    const isCommand = this.atCommand;
    this.command.words.push(word);
    if (this.array) this.#checkSubscript(word);
    else this.#keyword(word, isCommand);
  }

  /** @param isPiped what follows belongs to the same line @param endsPipe no further command can follow */
  endCommand(isPiped = false, endsPipe = false): void {
    this.endWord();
    if (this.array || this.inPattern) return;
    const { words, expressions, closes } = this.command;
    // A line break or a comment behind `|` does not end the command line.
    if (this.piped && words.length === 0 && expressions.length === 0 && closes === undefined && !endsPipe) return;
    this.#listener.judge(this.command);
    if (words.length > 0) this.line.addMember(words);
    if (this.piped && words.length > 0 && closes === undefined) this.line.addReader(words);
    this.reset();
    this.conditional = false;
    this.piped = false;
    if (!isPiped) this.line = this.#nextLine();
  }

  #nextLine(): CommandLine {
    const line = new CommandLine(this.#group);
    this.#listener.begins(line);
    return line;
  }

  #open(): void {
    if (this.#compounds.length >= COMPOUNDS_MAX) this.#listener.lose('the script is nested too deeply');
    this.#compounds.push({ line: this.line, group: this.#group, piped: this.piped });
    this.#group = new CommandLine(this.line);
    this.line = this.#nextLine();
    this.piped = false;
  }

  #close(): void {
    const open = this.#compounds.pop();
    if (open === undefined) return;
    const closed = this.#group;
    this.line = open.line;
    this.#group = open.group;
    this.piped = open.piped;
    if (open.piped) this.line.addReader(closed);
    this.command.closes = closed;
  }

  #checkSubscript(word: string): void {
    if (!word.startsWith('[')) return;
    const { words, expressions } = this.command;
    for (const use of expressions)
      if (use.word === words.length - 1)
        this.#listener.refuse(use.index, 'an array subscript is computed, and commands in it are run');
  }

  #keyword(word: string, isCommand: boolean): void {
    const { words } = this.command;
    const state = this.#cases.at(-1);
    // Asked for few words: a command may have tens of thousands before them.
    const isReservedBefore = (): boolean => {
      const other = words.findIndex((before) => !RESERVED.has(before));
      return other === -1 || other === words.length - 1;
    };
    if (word === '[[' && isCommand) this.conditional = true;
    else if (word === ']]') this.conditional = false;
    else if (words.length === 2 && words[0] === 'function') {
      // `function name {`: a command follows.
      this.#listener.defines(word);
      for (const { index } of this.command.expressions)
        this.#listener.refuse(index, "the value would be a name that 'function' defines");
      this.reset();
    } else if (word === 'case' && isCommand && state !== 'pattern') {
      this.#cases.push('subject');
      this.#open();
    } else if (word === 'in' && state === 'subject' && words.length >= 3) this.turnCase('pattern');
    else if (word === 'esac' && (state === 'pattern' ? words.length === 1 : state === 'body' && isCommand)) {
      this.#cases.pop();
      this.reset();
      this.#close();
    } else if (OPENING.has(word) && isReservedBefore()) this.#open();
    else if (CLOSING.has(word) && isReservedBefore()) this.#close();
    else if (word === 'coproc' && isReservedBefore())
      this.#listener.lose("what 'coproc' runs reads what other commands write");
    else if (word === 'alias' && isCommand)
      this.#listener.lose("after 'alias' the words of a script can mean something else");
  }
}
