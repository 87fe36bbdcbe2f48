/**
 * The first looks at a file, before any YAML parser: its size, its characters, then one linear pass over its lexical
 * tokens that measures nesting, anchors, aliases and the number of tokens.
 *
 * The tokens come from the `yaml` package's own lexer, which does not recurse over nested input and yields one token at
 * a time. A scan of ours with rules of its own for quotes and block scalars could be led astray by text that the two
 * read differently, and the nesting hidden from it would then reach the parser, which recurses: about 1,000 levels of
 * `[` end the process. So the parser is fed exactly the tokens that were measured here, and none before all were.
 */
import { Lexer } from 'yaml';
import { PIPELINE_LIMITS } from '../model/limits.ts';
import type { Problems } from '../text/problems.ts';
import { quoted } from '../text/printable.ts';
import { utf8Length } from '../text/text-position.ts';
import type { Span } from '../text/text-position.ts';

/** The lexer's marks, which take no room in the text: a document begins, a flow ends early, a scalar follows. */
const DOCUMENT_MARK = '\u0002';
const FLOW_ERROR_MARK = '\u0018';
const SCALAR_MARK = '\u001f';

/** What YAML calls non-printable, and a carriage return that ends no line. Neither is needed in a pipeline file. */
const REFUSED_CHARACTER =
  // oxlint-disable-next-line no-control-regex
  /[\u0000-\u0008\u000B\u000C\u000E-\u001F\u007F-\u0084\u0086-\u009F\uFEFF\uFFFE\uFFFF]|\r(?!\n)/;
const LONE_SURROGATE = /[\uD800-\uDFFF]/u;

/** What is said of a second document, with the remedy. */
export const MORE_DOCUMENTS = [
  'the file holds more than one YAML document',
  "keep one pipeline in a file, without further '---' lines",
] as const;

/** Whether the text may be read at all; if not, one problem says why. */
export function screenText(text: string, problems: Problems): boolean {
  const top = { start: 0, end: 0 };
  if (text.length > PIPELINE_LIMITS.textBytesMax || utf8Length(text) > PIPELINE_LIMITS.textBytesMax) {
    problems.add(
      top,
      '',
      `the file is larger than ${PIPELINE_LIMITS.textBytesMax / 1024} KiB`,
      'move long scripts into files of the repository',
    );
    return false;
  }
  const found = text.isWellFormed() ? REFUSED_CHARACTER.exec(text) : LONE_SURROGATE.exec(text);
  if (found === null) return true;
  const span = { start: found.index, end: found.index + 1 };
  const code = text.charCodeAt(found.index);
  if (code === 0x0d) {
    problems.add(span, '', 'a carriage return stands without a line feed after it', "end lines with '\\n' or '\\r\\n'");
  } else if (code >= 0xd800 && code <= 0xdfff) {
    problems.add(span, '', 'the text is not valid Unicode here (half of a surrogate pair)');
  } else {
    problems.add(
      span,
      '',
      `the character U+${code.toString(16).toUpperCase().padStart(4, '0')} is not allowed`,
      'in double quotes it can be written as an escape',
    );
  }
  return false;
}

/**
 * The tokens of a text that is safe to parse, or undefined and one problem. Tags and directives are noted as problems
 * without ending the scan: the parser survives them, so the rest of the file can still be checked.
 */
export function scanTokens(text: string, problems: Problems): string[] | undefined {
  const tokens: string[] = [];
  const depth = new DepthGauge();
  let offset = 0;
  let count = 0;
  let anchors = 0;
  let aliases = 0;
  let tags = 0;
  let documents = 0;
  let afterScalarMark = false;
  let isBlock = false;
  for (const token of new Lexer().lex(text)) {
    tokens.push(token);
    if (token === SCALAR_MARK) {
      afterScalarMark = true;
      continue;
    }
    if (afterScalarMark) {
      afterScalarMark = false;
      if (isBlock) depth.blockScalar();
      else depth.content();
      isBlock = false;
    } else if (token === FLOW_ERROR_MARK || token === DOCUMENT_MARK) {
      if (token === FLOW_ERROR_MARK) depth.endFlow();
      continue;
    } else if (token === '---' || token === '...') {
      documents += 1;
      // One of each may frame the document; a third begins or ends another.
      if (documents > 2) return refuse(problems, { start: offset, end: offset + 3 }, ...MORE_DOCUMENTS);
      depth.token(token);
    } else {
      const span = { start: offset, end: offset + token.length };
      switch (token[0]) {
        case '&':
          anchors += 1;
          if (anchors > PIPELINE_LIMITS.anchorsMax)
            return refuse(problems, span, `more than ${PIPELINE_LIMITS.anchorsMax} anchors`);
          break;
        case '*':
          aliases += 1;
          if (aliases > PIPELINE_LIMITS.aliasesMax)
            return refuse(problems, span, `more than ${PIPELINE_LIMITS.aliasesMax} aliases`);
          break;
        case '!':
          tags += 1;
          if (tags > PIPELINE_LIMITS.anchorsMax)
            return refuse(problems, span, `more than ${PIPELINE_LIMITS.anchorsMax} tags`);
          problems.add(
            span,
            '',
            `YAML tags are not supported, and a value that begins with '!' is one: ${quoted(token)}`,
            'put the value in quotes',
          );
          break;
        case '%':
          tags += 1;
          if (tags > PIPELINE_LIMITS.anchorsMax)
            return refuse(problems, span, `more than ${PIPELINE_LIMITS.anchorsMax} directives`);
          if (!/^%YAML\s+1\.2\s*$/.test(token))
            problems.add(span, '', `YAML directives are not supported: ${quoted(token)}`, 'remove the line');
          break;
        case '|':
        case '>':
          isBlock = true;
          break;
        default:
      }
      depth.token(token);
    }
    offset += token.length;
    count += 1;
    if (depth.misplaced > PIPELINE_LIMITS.depthMax) {
      return refuse(
        problems,
        { start: offset - token.length, end: offset },
        `more than ${PIPELINE_LIMITS.depthMax} values, brackets or indicators stand where none can`,
        "check the indentation, and put values that hold ': ', brackets or quotes in quotes",
      );
    }
    if (depth.value > PIPELINE_LIMITS.depthMax) {
      return refuse(
        problems,
        { start: offset - token.length, end: offset },
        `nested more than ${PIPELINE_LIMITS.depthMax} levels deep`,
      );
    }
    if (depth.entries > PIPELINE_LIMITS.entriesMax) {
      return refuse(
        problems,
        { start: offset - token.length, end: offset },
        `more than ${PIPELINE_LIMITS.stagesMax.toLocaleString('en')} stages, or entries of 'env' and the like`,
        'use a matrix for stages that are alike, or split the pipeline',
      );
    }
    if (count > PIPELINE_LIMITS.tokensMax + depth.entries * PIPELINE_LIMITS.tokensPerEntry) {
      return refuse(
        problems,
        { start: offset - token.length, end: offset },
        `the file has more than ${PIPELINE_LIMITS.tokensMax.toLocaleString('en')} YAML tokens, and ${PIPELINE_LIMITS.tokensPerEntry} more for each stage`,
        'use a matrix for stages that are alike, or split the pipeline',
      );
    }
  }
  return tokens;
}

function refuse(problems: Problems, span: Span, message: string, remedy?: string): undefined {
  problems.add(span, '', message, remedy);
  return undefined;
}

/**
 * Measures the nesting, and counts what makes the parser slow and never stands in a sound file.
 *
 * GAUGE-1. `indents` holds the indentations that are open, measured by the parser's rule: leading spaces and indicators count
 *    and leading tabs do not, for a tab that counted here and not there would hide levels.
 * GAUGE-2. `misplaced` counts what is an error wherever it stands: an indicator in mid-line (`a: b: c:`), a value behind a value
 *    (`"a" "b"`), a bracket that closes nothing. The parser reports each, nests some of them, and takes ten times as long.
 * GAUGE-3. The parser's own stack is checked as well while it is fed (`yaml-tree.ts`). This gauge refuses what is plainly too
 *    deep before anything is parsed; that check is exact, also for what the parser makes of broken text.
 */
class DepthGauge {
  readonly #indents: number[] = [];
  #flow = 0;
  #entries = 0;
  #misplaced = 0;
  #indent = 0;
  #atLineStart = true;
  #valueSeen = false;
  #contentSeen = false;
  /** The open flow collection is the first thing of its line: its level and the line's indentation are one and the same. */
  #flowFirst = false;

  get value(): number {
    return this.#indents.length + this.#flow - (this.#flowFirst ? 1 : 0);
  }

  /** Lines that begin on the second level, as a stage does: what may make a file long. */
  get entries(): number {
    return this.#entries;
  }

  get misplaced(): number {
    return this.#misplaced;
  }

  /** A scalar, an alias or the beginning of a collection. */
  content(): void {
    if (this.#contentSeen) this.#misplaced += 1;
    this.#contentSeen = true;
    this.#place();
  }

  /** The lines of a block scalar, the end of the last one included: what follows begins a line. */
  blockScalar(): void {
    this.#newline();
  }

  endFlow(): void {
    this.#flow = 0;
    this.#flowFirst = false;
    this.#misplaced += 1;
  }

  token(token: string): void {
    switch (token[0]) {
      case '\n':
      case '\r':
        this.#newline();
        return;
      case ' ':
        if (this.#atLineStart) this.#indent += token.length;
        return;
      case '\t':
      case '#':
        return;
      case '[':
      case '{':
        if (this.#flow === 0) this.#flowFirst = this.#atLineStart;
        this.content();
        this.#contentSeen = false;
        this.#flow += 1;
        return;
      case ']':
      case '}':
        if (this.#flow > 0) this.#flow -= 1;
        else this.#misplaced += 1;
        if (this.#flow === 0) this.#flowFirst = false;
        this.#contentSeen = true;
        return;
      case ',':
        this.#contentSeen = false;
        return;
      case '-':
      case '?':
      case ':':
        this.#indicator(token);
        return;
      case '&':
      case '!':
      case '|':
      case '>':
        // Properties and headers belong to the content after them.
        this.#place();
        return;
      default:
        this.content();
    }
  }

  #newline(): void {
    this.#atLineStart = true;
    this.#valueSeen = false;
    this.#indent = 0;
    if (this.#flow === 0) this.#contentSeen = false;
  }

  #indicator(token: string): void {
    this.#contentSeen = false;
    if (token.length > 1 || this.#flow > 0) return;
    if (this.#atLineStart) {
      this.#open();
      this.#indent += 1;
    } else if (token === ':' && !this.#valueSeen) {
      this.#valueSeen = true;
    } else {
      this.#misplaced += 1;
    }
  }

  #place(): void {
    if (this.#flow > 0 || !this.#atLineStart) return;
    this.#open();
    if (this.#indents.length === 2) this.#entries += 1;
    this.#atLineStart = false;
  }

  #open(): void {
    while ((this.#indents.at(-1) ?? -1) > this.#indent) this.#indents.pop();
    if (this.#indents.at(-1) !== this.#indent) this.#indents.push(this.#indent);
  }
}
