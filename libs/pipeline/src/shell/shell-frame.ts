/**
 * One level of a script that is being scanned: the command being read and the words it has so far, and which of the
 * shell's constructs that change what a character means (`case`, `[[ ]]`, `name=( )`) it is in.
 */
import { commandIndex, runsItsInput } from './shell-hazards.ts';
import type { SimpleCommand } from './shell-hazards.ts';

/** What a frame tells its scanner. */
export interface ShellFrameListener {
  /** A command is complete: its expressions can be judged. */
  judge(command: SimpleCommand): void;
  refuse(index: number, reason: string): void;
  /** From here on the script cannot be followed. */
  lose(reason: string): void;
  /** A command reads code from a pipe. */
  feedsShell(): void;
}

export class ShellFrame {
  command: SimpleCommand = { words: [], expressions: [] };
  word: string | undefined;
  /** The next word belongs to a redirection. */
  redirecting = false;
  /** Inside `[[ ]]`, where `(`, `<` and `&&` do not end anything. */
  conditional = false;
  /** Inside `name=( )`. */
  readonly array: boolean;
  /** The command reads from a pipe. */
  piped = false;
  readonly #cases: ('subject' | 'pattern' | 'body')[] = [];
  readonly #listener: ShellFrameListener;

  constructor(listener: ShellFrameListener, array: boolean) {
    this.#listener = listener;
    this.array = array;
  }

  /** Where the next character is part of a pattern of `case`. */
  get inPattern(): boolean {
    return this.#cases.at(-1) === 'pattern';
  }

  /** Where a word that began here would name a program. */
  get atCommand(): boolean {
    return this.word === undefined && commandIndex(this.command.words) === this.command.words.length;
  }

  append(text: string): void {
    this.word = (this.word ?? '') + text;
  }

  /** Notes an expression as part of the current word. */
  addExpression(index: number, nested: boolean): void {
    this.command.expressions.push({ index, word: this.redirecting ? -1 : this.command.words.length, nested });
  }

  reset(): void {
    this.command = { words: [], expressions: [] };
    this.redirecting = false;
  }

  /** A pattern of `case` ends and its commands begin, or the other way round. */
  turnCase(state: 'pattern' | 'body'): void {
    if (this.#cases.length > 0) this.#cases[this.#cases.length - 1] = state;
    this.reset();
  }

  endWord(): void {
    const { word } = this;
    if (word === undefined) return;
    this.word = undefined;
    if (this.redirecting) {
      this.redirecting = false;
      return;
    }
    const isCommand = this.atCommand;
    this.command.words.push(word);
    if (this.array) this.#checkSubscript(word);
    else this.#keyword(word, isCommand);
  }

  endCommand(): void {
    this.endWord();
    if (this.array || this.inPattern) return;
    this.#listener.judge(this.command);
    if (this.piped && runsItsInput(this.command.words)) this.#listener.feedsShell();
    this.reset();
    this.conditional = false;
    this.piped = false;
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
    if (word === '[[' && isCommand) this.conditional = true;
    else if (word === ']]') this.conditional = false;
    else if (word === 'case' && isCommand && state !== 'pattern') this.#cases.push('subject');
    else if (word === 'in' && state === 'subject' && words.length >= 3) this.turnCase('pattern');
    else if (word === 'esac' && (state === 'pattern' ? words.length === 1 : state === 'body' && isCommand)) {
      this.#cases.pop();
      this.reset();
    } else if (word === 'alias' && isCommand)
      this.#listener.lose("after 'alias' the words of a script can mean something else");
  }
}
