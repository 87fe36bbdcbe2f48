/**
 * Owns the problems found in one file, from the first look at its text to the last check of its graph.
 *
 * PROBLEMS-1. It is bounded: a hostile file cannot make it grow, the problems beyond the bound are only counted.
 * PROBLEMS-2. Lines, columns and suggestions are computed for the problems that are shown, not for all that were found.
 */
import type { Diagnostic } from '../model/definition.ts';
import { PIPELINE_LIMITS } from '../model/limits.ts';
import { LineIndex } from './text-position.ts';
import type { Span } from './text-position.ts';

interface Problem {
  readonly span: Span;
  readonly path: string;
  readonly message: string;
  readonly suggest: (() => string | undefined) | undefined;
}

/** Problems kept before they are sorted by place; more than are shown, for they are not found in file order. */
const KEPT_MAX = PIPELINE_LIMITS.diagnosticsMax * 10;

export class Problems {
  readonly #kept: Problem[] = [];
  readonly #covered = new Set<number>();
  #count = 0;

  /** Notes a problem. `suggest` is called only if the problem is shown. */
  add(span: Span, path: string, message: string, suggest?: string | (() => string | undefined)): void {
    if (this.#covered.has(span.start)) return;
    this.#count += 1;
    if (this.#kept.length >= KEPT_MAX) return;
    this.#kept.push({ span, path, message, suggest: typeof suggest === 'string' ? () => suggest : suggest });
  }

  /** Keeps later problems of the same place out: what stands there is known to be wrong, and they would only follow from it. */
  cover(span: Span): void {
    this.#covered.add(span.start);
  }

  get count(): number {
    return this.#count;
  }

  /** The problems in the order of the file, at most as many as the limit, then a line that counts the others. */
  diagnostics(text: string): Diagnostic[] {
    const sorted = this.#kept.toSorted((left, right) => left.span.start - right.span.start);
    const index = new LineIndex(text);
    const seen = new Set<string>();
    const shown: Diagnostic[] = [];
    let repeated = 0;
    for (const problem of sorted) {
      if (shown.length >= PIPELINE_LIMITS.diagnosticsMax) break;
      // A value shared by aliases or by the expansions of a matrix has its problem once.
      const key = `${problem.span.start} ${problem.message}`;
      if (seen.has(key)) {
        repeated += 1;
        continue;
      }
      seen.add(key);
      shown.push(toDiagnostic(problem, text, index));
    }
    const hidden = this.#count - shown.length - repeated;
    const last = shown.at(-1);
    if (hidden > 0 && last !== undefined) {
      shown.push({
        line: last.line,
        column: last.column,
        path: '',
        message: `${hidden} more problem${hidden === 1 ? '' : 's'} not shown`,
      });
    }
    return shown;
  }
}

function toDiagnostic(problem: Problem, text: string, index: LineIndex): Diagnostic {
  const start = Math.min(problem.span.start, text.length);
  const end = Math.min(problem.span.end, index.lineEnd(start, text));
  const suggestion = problem.suggest?.();
  return {
    ...index.position(start),
    path: problem.path,
    message: problem.message,
    ...(suggestion === undefined ? {} : { suggestion }),
    length: Math.max(1, end - start),
  };
}
