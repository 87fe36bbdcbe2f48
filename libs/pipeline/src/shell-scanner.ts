/**
 * Follows a script through the shell's quoting and writes each `${{ }}` as a reference to an environment variable,
 * quoted for the place it stands in. The value never becomes part of the text that the shell parses.
 *
 * 1. What is written is a plain parameter expansion, and the result of one is not scanned for commands again. So even
 *    where this scanner read the quoting otherwise than some shell does, a value could be split into words there, but
 *    not become a command.
 * 2. Places where a shell evaluates the result once more (arithmetic, subscripts, `eval`) are refused, here by their
 *    syntax and in `shell-hazards.ts` by the command that receives it.
 * 3. Where the quoting cannot be followed with certainty in every supported shell, the scanner is `lost`, and every
 *    expression of the script is refused.
 */
import { commandIndex, EXPRESSION_MARK, judgeCommand, runsItsInput } from './shell-hazards.ts';
import type { SimpleCommand } from './shell-hazards.ts';

export interface Substitution {
  readonly script: string;
  /** Why an expression, by its index in the script, cannot stand where it does. */
  readonly refusals: ReadonlyMap<number, string>;
}

/** Replaces the marks of a script by references to the variables `names`, one name for each mark in order. */
export function bindExpressions(script: string, names: readonly string[], shell: string): Substitution {
  return new ShellScanner(script, names, ANSI_QUOTE_SHELLS.has(shell.slice(shell.lastIndexOf('/') + 1))).scan();
}

interface Frame {
  command: SimpleCommand;
  word: string | undefined;
  /** The next word belongs to a redirection. */
  redirecting: boolean;
  /** Inside `[[ ]]`, where `(`, `<` and `&&` do not end anything. */
  conditional: boolean;
  /** Inside `name=( )`. */
  readonly array: boolean;
  readonly cases: ('subject' | 'pattern' | 'body')[];
  /** The command reads from a pipe. */
  piped: boolean;
}

interface HereDocument {
  readonly delimiter: string;
  readonly quoted: boolean;
  readonly stripTabs: boolean;
  readonly level: number;
  readonly command: SimpleCommand;
}

type Place = 'plain' | 'double' | 'single';

const LEVELS_MAX = 40;
/** Shells that know `$'…'`; for the others, and for `sh`, which may be either, it can end elsewhere. */
const ANSI_QUOTE_SHELLS = new Set(['bash', 'zsh', 'ksh']);
const ORDINARY = /[A-Za-z0-9_.,:=@%+~^/-]+/y;
const ORDINARY_IN_QUOTES = /[^"\\$`\uFFFF]+/y;
const INTEGER_DECLARATION = /\b(?:declare|typeset|local|export|readonly)\b[^\n;]*\s[-+][A-Za-z]*[inEF]|(?:^|[\s;])(?:integer|float)\s/;

class ShellScanner {
  readonly #text: string;
  readonly #names: readonly string[];
  readonly #out: string[] = [];
  readonly #refusals = new Map<number, string>();
  readonly #integersDeclared: boolean;
  readonly #ansiQuotes: boolean;
  #hereDocuments: HereDocument[] = [];
  #at = 0;
  /** The end of what is being scanned: the text's, or a here-document's. */
  #end: number;
  #copied = 0;
  #index = 0;
  #level = 0;
  #lost: string | undefined;
  /** Why no expression can stand in the construct being scanned. */
  #refusing: string | undefined;
  #feedsShell = false;

  constructor(text: string, names: readonly string[], ansiQuotes: boolean) {
    this.#ansiQuotes = ansiQuotes;
    this.#text = text;
    this.#names = names;
    this.#end = text.length;
    this.#integersDeclared = INTEGER_DECLARATION.test(text);
  }

  scan(): Substitution {
    this.#commands(undefined, false);
    if (this.#lost === undefined && this.#hereDocuments.length > 0) this.#lose('a here-document in this script has no body');
    if (this.#index < this.#names.length) this.#lose('the quoting of this script cannot be followed');
    const reason = this.#lost ?? (this.#feedsShell ? 'this script pipes text into an interpreter, which would run it' : undefined);
    if (reason !== undefined) for (let index = 0; index < this.#names.length; index++) this.#refuse(index, reason);
    this.#out.push(this.#text.slice(this.#copied));
    return { script: this.#out.join(''), refusals: this.#refusals };
  }

  /** Scans commands up to the closing parenthesis, or to the end where there is none to come. */
  #commands(close: ')' | undefined, array: boolean): void {
    const frame: Frame = { command: { words: [], expressions: [] }, word: undefined, redirecting: false, conditional: false, array, cases: [], piped: false };
    this.#level += 1;
    if (this.#level > LEVELS_MAX) this.#lose('the script is nested too deeply');
    while (this.#lost === undefined) {
      if (this.#at >= this.#end) {
        if (close !== undefined) this.#lose("a '(' of this script is not closed");
        else this.#endCommand(frame);
        break;
      }
      const character = this.#text[this.#at];
      if (character === ')' && !frame.conditional && frame.cases.at(-1) !== 'pattern') {
        if (close === undefined) this.#lose("a ')' of this script closes nothing");
        this.#endCommand(frame);
        if (this.#hereDocuments.some((document) => document.level === this.#level)) this.#lose('a here-document begins inside parentheses that close before its body');
        this.#at += 1;
        break;
      }
      this.#step(frame, character ?? '');
    }
    this.#level -= 1;
  }

  #step(frame: Frame, character: string): void {
    switch (character) {
      case EXPRESSION_MARK:
        this.#expression(frame, 'plain');
        return;
      case '\\':
        this.#escape(frame);
        return;
      case "'":
        this.#single(frame);
        return;
      case '"':
        this.#double(frame);
        return;
      case '`':
        this.#backtick(frame);
        return;
      case '$':
        this.#dollar(frame, false);
        return;
      case '#':
        if (frame.word === undefined) this.#comment();
        else this.#ordinary(frame, character);
        return;
      case ' ':
      case '\t':
        this.#endWord(frame);
        this.#at += 1;
        return;
      case '\n':
        this.#newline(frame);
        return;
      case ';':
      case '&':
      case '|':
        this.#separator(frame, character);
        return;
      case '<':
      case '>':
        this.#redirection(frame, character);
        return;
      case '(':
        this.#parenthesis(frame);
        return;
      case ')':
        // Inside `[[ ]]`, or after a pattern of `case`.
        this.#endWord(frame);
        if (!frame.conditional) this.#casePattern(frame, 'body');
        this.#at += 1;
        return;
      default: {
        ORDINARY.lastIndex = this.#at;
        const run = ORDINARY.exec(this.#text)?.[0] ?? character;
        this.#ordinary(frame, run.slice(0, this.#end - this.#at));
      }
    }
  }

  #ordinary(frame: Frame, text: string): void {
    frame.word = (frame.word ?? '') + text;
    this.#at += text.length;
  }

  /** Notes the expression at the present place as part of the frame's current word, and writes its reference. */
  #expression(frame: Frame, place: Place): void {
    frame.command.expressions.push({ index: this.#index, word: frame.redirecting ? -1 : frame.command.words.length, nested: false });
    frame.word = (frame.word ?? '') + EXPRESSION_MARK;
    this.#place(place);
  }

  #place(place: Place): void {
    const index = this.#index;
    this.#index += 1;
    const reason = this.#lost ?? this.#refusing;
    if (reason !== undefined) this.#refuse(index, reason);
    const name = this.#names[index] ?? '';
    const reference = place === 'double' ? `\${${name}}` : place === 'plain' ? `"\${${name}}"` : `'"\${${name}}"'`;
    this.#out.push(this.#text.slice(this.#copied, this.#at), reference);
    this.#at += 1;
    this.#copied = this.#at;
  }

  #refuse(index: number, reason: string): void {
    if (!this.#refusals.has(index)) this.#refusals.set(index, reason);
  }

  #lose(reason: string): void {
    this.#lost ??= reason;
  }

  #within(reason: string, scan: () => void): void {
    const outer = this.#refusing;
    this.#refusing ??= reason;
    this.#level += 1;
    if (this.#level > LEVELS_MAX) this.#lose('the script is nested too deeply');
    else scan();
    this.#level -= 1;
    this.#refusing = outer;
  }

  #escape(frame: Frame): void {
    const next = this.#text[this.#at + 1];
    if (next === EXPRESSION_MARK) {
      this.#at += 1;
      this.#refusedExpression(frame, 'a backslash stands directly before it');
    } else if (next === '\n') {
      this.#at += 2;
    } else {
      this.#ordinary(frame, this.#text.slice(this.#at, Math.min(this.#at + 2, this.#end)));
    }
  }

  #refusedExpression(frame: Frame, reason: string): void {
    this.#refuse(this.#index, reason);
    this.#expression(frame, 'double');
  }

  #single(frame: Frame): void {
    const close = this.#text.indexOf("'", this.#at + 1);
    if (close === -1 || close >= this.#end) {
      this.#lose("a ' of this script is not closed");
      return;
    }
    this.#ordinary(frame, "'");
    frame.word = (frame.word ?? '').slice(0, -1);
    this.#crossesLines(this.#at, close);
    while (this.#at < close) {
      if (this.#text[this.#at] === EXPRESSION_MARK) {
        this.#expression(frame, 'single');
      } else {
        const mark = this.#text.indexOf(EXPRESSION_MARK, this.#at);
        this.#ordinary(frame, this.#text.slice(this.#at, mark === -1 || mark > close ? close : mark));
      }
    }
    this.#at = close + 1;
  }

  /** The shells differ in where a here-document begins whose line is continued inside quotes. */
  #crossesLines(from: number, to: number): void {
    if (this.#hereDocuments.length > 0 && this.#text.slice(from, to).includes('\n')) this.#lose('quotes go over the line at which a here-document begins');
  }

  #double(frame: Frame): void {
    const start = this.#at;
    this.#at += 1;
    frame.word ??= '';
    while (this.#lost === undefined) {
      if (this.#at >= this.#end) {
        this.#lose('a " of this script is not closed');
        return;
      }
      const character = this.#text[this.#at] ?? '';
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
  #dollar(frame: Frame, quoted: boolean): void {
    const next = this.#text[this.#at + 1];
    if (this.#at + 1 >= this.#end) this.#ordinary(frame, '$');
    else if (next === EXPRESSION_MARK) {
      this.#ordinary(frame, '$');
      this.#refusedExpression(frame, "a '$' stands directly before it");
    } else if (next === '(' && this.#text[this.#at + 2] === '(') this.#arithmetic(frame, 3);
    else if (next === '(') this.#substitution(frame, 2);
    else if (next === '{') this.#parameter(frame, quoted);
    else if (next === '[') this.#lose("after '$[' the shells read a script differently");
    else if (next === "'" && !quoted) this.#ansiQuote(frame);
    else if (next === '"' && !quoted) {
      this.#ordinary(frame, '$');
      this.#within('it stands inside $"…", which is translated', () => this.#double(frame));
    } else this.#ordinary(frame, '$');
  }

  /** `$( )`, `<( )` and `>( )`: commands of their own, whose output or name becomes part of the word. */
  #substitution(frame: Frame, opening: number): void {
    const from = this.#index;
    this.#ordinary(frame, this.#text.slice(this.#at, this.#at + opening));
    this.#commands(')', false);
    for (let index = from; index < this.#index; index++) {
      frame.command.expressions.push({ index, word: frame.redirecting ? -1 : frame.command.words.length, nested: true });
    }
  }

  #ansiQuote(frame: Frame): void {
    let close = this.#at + 2;
    while (close < this.#end && this.#text[close] !== "'") {
      if (this.#text[close] === '\\') {
        if (!this.#ansiQuotes) this.#lose("after $'…' with a backslash in it the shells read a script differently");
        close += 1;
      }
      close += 1;
    }
    if (close >= this.#end) this.#lose("a $' of this script is not closed");
    this.#crossesLines(this.#at, close);
    frame.word ??= '';
    this.#within("it stands inside $'…'", () => {
      while (this.#at < close && this.#lost === undefined) {
        if (this.#text[this.#at] === EXPRESSION_MARK) this.#expression(frame, 'double');
        else this.#ordinary(frame, this.#text[this.#at] ?? '');
      }
    });
    this.#at = close + 1;
  }

  /** `$(( ))` and `(( ))`: what stands there is computed, and a value such as `a[$(id)]` would be run. */
  #arithmetic(frame: Frame, opening: number): void {
    this.#ordinary(frame, this.#text.slice(this.#at, this.#at + opening));
    this.#within('it stands in arithmetic, which is computed', () => {
      let open = 0;
      while (this.#lost === undefined) {
        const character = this.#at < this.#end ? this.#text[this.#at] : undefined;
        if (character === undefined) this.#lose("a '((' of this script is not closed");
        else if (character === EXPRESSION_MARK) this.#expression(frame, 'double');
        else if (character === '$') this.#dollar(frame, true);
        else if (character === '`') this.#backtick(frame);
        else if ('\'"\\'.includes(character)) this.#lose("after quotes inside '(( ))' the shells read a script differently");
        else if (character === ')' && open === 0) {
          if (this.#text[this.#at + 1] !== ')') this.#lose("after '((' that is not closed by '))' the shells read a script differently");
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

  #parameter(frame: Frame, quoted: boolean): void {
    if (/[\s|]/.test(this.#text[this.#at + 2] ?? '')) {
      this.#lose("after '${ ' the shells read a script differently");
      return;
    }
    this.#ordinary(frame, '${');
    this.#within('it stands inside ${…}', () => {
      while (this.#lost === undefined) {
        const character = this.#at < this.#end ? this.#text[this.#at] : undefined;
        if (character === undefined) this.#lose("a '${' of this script is not closed");
        else if (character === '}') {
          this.#at += 1;
          return;
        } else if (character === EXPRESSION_MARK) this.#expression(frame, 'double');
        else if (character === '\\') this.#escape(frame);
        else if (character === '`') this.#backtick(frame);
        else if (character === '$') this.#dollar(frame, quoted);
        else if (character === "'" && quoted) this.#lose("after ' inside \"${…}\" the shells read a script differently");
        else if (character === "'") this.#single(frame);
        else if (character === '"') {
          const start = this.#at;
          this.#double(frame);
          if (quoted && this.#text.slice(start, this.#at).includes('}')) this.#lose('after quotes inside "${…}" the shells read a script differently');
        } else this.#at += 1;
      }
    });
  }

  #backtick(frame: Frame): void {
    this.#ordinary(frame, '`');
    this.#within('it stands inside backticks', () => {
      while (this.#lost === undefined) {
        const character = this.#at < this.#end ? this.#text[this.#at] : undefined;
        if (character === undefined) this.#lose('a ` of this script is not closed');
        else if (character === '`') {
          this.#at += 1;
          return;
        } else if (character === EXPRESSION_MARK) this.#expression(frame, 'double');
        else this.#at += character === '\\' && this.#text[this.#at + 1] !== EXPRESSION_MARK ? 2 : 1;
      }
    });
  }

  /** Drops the expressions of a comment: nobody reads them. */
  #comment(): void {
    while (this.#at < this.#end && this.#text[this.#at] !== '\n') {
      if (this.#text[this.#at] === EXPRESSION_MARK) {
        this.#out.push(this.#text.slice(this.#copied, this.#at));
        this.#index += 1;
        this.#copied = this.#at + 1;
      }
      this.#at += 1;
    }
  }

  #newline(frame: Frame): void {
    this.#endWord(frame);
    const documents = this.#hereDocuments;
    this.#hereDocuments = [];
    this.#at += 1;
    if (documents.some((document) => document.level !== this.#level)) this.#lose('a here-document begins on a line that ends inside parentheses');
    if (!frame.conditional) this.#endCommand(frame);
    for (const document of documents) if (this.#lost === undefined) this.#hereDocument(document);
  }

  #separator(frame: Frame, character: string): void {
    this.#endWord(frame);
    if (frame.conditional || frame.array) {
      this.#at += 1;
      return;
    }
    const two = this.#text.slice(this.#at, this.#at + 2);
    if (two === '&>') {
      this.#at += this.#text[this.#at + 2] === '>' ? 3 : 2;
      frame.redirecting = true;
      return;
    }
    if (frame.cases.at(-1) === 'pattern' && character === '|') {
      this.#at += 1;
      return;
    }
    this.#endCommand(frame);
    if (two === ';;' || two === ';&' || two === ';|') {
      this.#casePattern(frame, 'pattern');
      this.#at += this.#text.startsWith(';;&', this.#at) ? 3 : 2;
      return;
    }
    frame.piped = character === '|' && two !== '||';
    this.#at += two === '&&' || two === '||' || two === '|&' ? 2 : 1;
  }

  #redirection(frame: Frame, character: string): void {
    if (frame.conditional) {
      this.#endWord(frame);
      this.#at += 1;
      return;
    }
    if (this.#text[this.#at + 1] === '(') {
      this.#substitution(frame, 2);
      return;
    }
    // The number of a descriptor is no word of the command.
    if (frame.word !== undefined && /^[0-9]+$/.test(frame.word)) frame.word = undefined;
    this.#endWord(frame);
    if (character === '<' && this.#text.startsWith('<<', this.#at) && !this.#text.startsWith('<<<', this.#at)) {
      this.#hereDelimiter(frame);
      return;
    }
    const operator = /^(<<<|>>|>\||<>|>&|<&|>|<)/.exec(this.#text.slice(this.#at, this.#at + 3))?.[0] ?? character;
    this.#at += operator.length;
    frame.redirecting = true;
  }

  #hereDelimiter(frame: Frame): void {
    const found = /^<<(-?)[ \t]*((?:'[^'\n]*'|"[^"\n$`\\]*"|\\[^\n]|[^\s'"\\;&|<>()$`])+)/.exec(this.#text.slice(this.#at, Math.min(this.#end, this.#at + 200)));
    if (found === null || found[0].includes(EXPRESSION_MARK)) {
      this.#lose('the delimiter of a here-document cannot be read');
      return;
    }
    const raw = found[2] ?? '';
    this.#hereDocuments.push({
      delimiter: raw.replace(/'([^']*)'|"([^"]*)"|\\(.)/g, '$1$2$3'),
      quoted: /['"\\]/.test(raw),
      stripTabs: found[1] === '-',
      level: this.#level,
      command: frame.command,
    });
    this.#at += found[0].length;
  }

  #hereDocument(document: HereDocument): void {
    const end = this.#hereDocumentEnd(document);
    if (end === undefined) {
      this.#lose(`a here-document of this script is not closed by '${document.delimiter}'`);
      return;
    }
    const frame: Frame = { command: document.command, word: undefined, redirecting: true, conditional: false, array: false, cases: [], piped: false };
    const outerEnd = this.#end;
    this.#end = end.body;
    while (this.#lost === undefined && this.#at < this.#end) {
      const character = this.#text[this.#at] ?? '';
      if (character === EXPRESSION_MARK && document.quoted) this.#refusedExpression(frame, 'it stands in a here-document whose delimiter is quoted');
      else if (character === EXPRESSION_MARK) this.#expression(frame, 'double');
      else if (document.quoted) this.#at += 1;
      else if (character === '\\') this.#escape(frame);
      else if (character === '$') this.#hereDollar(frame);
      else if (character === '`') this.#backtick(frame);
      else this.#at += 1;
    }
    this.#end = outerEnd;
    if (this.#lost === undefined) this.#at = end.next;
    this.#judge(document.command);
  }

  #hereDollar(frame: Frame): void {
    if (this.#text[this.#at + 1] === EXPRESSION_MARK) this.#dollar(frame, true);
    else this.#within('it stands inside $( ) in a here-document', () => this.#dollar(frame, true));
  }

  #hereDocumentEnd(document: HereDocument): { body: number; next: number } | undefined {
    let continued = false;
    for (let from = this.#at; from < this.#end; ) {
      const newline = this.#text.indexOf('\n', from);
      const to = newline === -1 || newline > this.#end ? this.#end : newline;
      const line = this.#text.slice(from, to);
      if (!continued && (document.stripTabs ? line.replace(/^\t+/, '') : line) === document.delimiter) return { body: from, next: Math.min(to + 1, this.#end) };
      continued = !document.quoted && (/\\+$/.exec(line)?.[0].length ?? 0) % 2 === 1;
      from = to + 1;
    }
    return undefined;
  }

  #parenthesis(frame: Frame): void {
    if (frame.conditional) {
      this.#endWord(frame);
      this.#at += 1;
      return;
    }
    const { word } = frame;
    const atCommand = word === undefined && commandIndex(frame.command.words) === frame.command.words.length;
    const empty = /^\([ \t]*\)/.exec(this.#text.slice(this.#at, this.#at + 10))?.[0];
    if (word !== undefined && /^[A-Za-z_][A-Za-z0-9_]*\+?=$/.test(word)) {
      this.#at += 1;
      this.#commands(')', true);
    } else if (empty !== undefined && !atCommand) {
      // `name ()` begins the definition of a function; what follows is a command.
      this.#at += empty.length;
      frame.word = undefined;
      frame.command = { words: [], expressions: [] };
    } else if (this.#text[this.#at + 1] === '(' && (atCommand || (word === undefined && frame.command.words.join(' ') === 'for'))) {
      this.#arithmetic(frame, 2);
    } else if (frame.cases.at(-1) === 'pattern' && word === undefined) {
      this.#at += 1;
    } else if (atCommand) {
      this.#at += 1;
      this.#commands(')', false);
    } else {
      this.#lose("after a '(' inside a word the shells read a script differently");
    }
  }

  #casePattern(frame: Frame, state: 'pattern' | 'body'): void {
    if (frame.cases.length > 0) frame.cases[frame.cases.length - 1] = state;
    frame.command = { words: [], expressions: [] };
    frame.redirecting = false;
  }

  #endWord(frame: Frame): void {
    const { word } = frame;
    if (word === undefined) return;
    frame.word = undefined;
    if (frame.redirecting) {
      frame.redirecting = false;
      return;
    }
    const { words } = frame.command;
    const isCommand = commandIndex(words) === words.length;
    words.push(word);
    if (frame.array) {
      if (word.startsWith('[')) for (const use of frame.command.expressions) if (use.word === words.length - 1) this.#refuse(use.index, 'an array subscript is computed, and commands in it are run');
      return;
    }
    const state = frame.cases.at(-1);
    if (word === '[[' && isCommand) frame.conditional = true;
    else if (word === ']]') frame.conditional = false;
    else if (word === 'case' && isCommand && state !== 'pattern') frame.cases.push('subject');
    else if (word === 'in' && state === 'subject' && words.length >= 3) this.#casePattern(frame, 'pattern');
    else if (word === 'esac' && (state === 'pattern' ? words.length === 1 : state === 'body' && isCommand)) {
      frame.cases.pop();
      frame.command = { words: [], expressions: [] };
    } else if (word === 'alias' && isCommand) this.#lose("after 'alias' the words of a script can mean something else");
  }

  #endCommand(frame: Frame): void {
    this.#endWord(frame);
    if (frame.array || frame.cases.at(-1) === 'pattern') return;
    this.#judge(frame.command);
    if (frame.piped && runsItsInput(frame.command.words)) this.#feedsShell = true;
    frame.command = { words: [], expressions: [] };
    frame.redirecting = false;
    frame.conditional = false;
    frame.piped = false;
  }

  #judge(command: SimpleCommand): void {
    judgeCommand(command, this.#integersDeclared, (index, reason) => this.#refuse(index, reason));
  }
}
