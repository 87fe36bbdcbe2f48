/**
 * Long lists, a part at a time: a browser that is to draw tens of thousands of rows at once does nothing else for a minute. What is drawn of
 * equal height in a box of its own is better drawn where it is seen (`drawn-part.ts`).
 */
import { useSignal } from '@preact/signals';
import type { ComponentChildren, JSX } from 'preact';
import { problemFrom, type Problem } from '../api/http.ts';
import { ProblemNote } from './states.tsx';
import { useAlone } from './use-alone.ts';

/** A few screens of them; the browser finds words in what is drawn. */
const AT_ONCE = 500;

/** Of rows that are all there the first ones, and a button for the next. */
export function First<Row>({
  rows,
  children,
}: {
  readonly rows: readonly Row[];
  readonly children: (shown: readonly Row[]) => ComponentChildren;
}): JSX.Element {
  const count = useSignal(AT_ONCE);
  const left = rows.length - count.value;
  return (
    <>
      {children(rows.slice(0, count.value))}
      {left > 0 ? (
        <p>
          <ShowMore onMore={() => (count.value += AT_ONCE)} />{' '}
          <span class="faint">{left.toLocaleString()} are not shown.</span>
        </p>
      ) : null}
    </>
  );
}

/** Of rows that the server gives page by page those of the first page, and a button for the next. */
export function Pages<Row>({
  first,
  size,
  next,
  children,
}: {
  readonly first: readonly Row[];
  /** A page that has fewer is the last one. */
  readonly size: number;
  readonly next: (last: Row) => Promise<readonly Row[]>;
  readonly children: (rows: readonly Row[]) => ComponentChildren;
}): JSX.Element {
  const later = useSignal<readonly Row[]>([]);
  const hasMore = useSignal(true);
  const problem = useSignal<Problem | null>(null);
  const alone = useAlone();
  const rows = [...first, ...later.value];
  const last = rows.at(-1);
  const more = async (): Promise<void> => {
    if (last === undefined) return;
    try {
      const page = await next(last);
      later.value = [...later.peek(), ...page];
      hasMore.value = page.length === size;
      problem.value = null;
    } catch (error) {
      problem.value = problemFrom(error);
    }
  };
  return (
    <>
      {children(rows)}
      {problem.value === null ? null : <ProblemNote problem={problem.value} />}
      {first.length === size && hasMore.value ? (
        <p>
          <ShowMore onMore={() => alone(more)} />
        </p>
      ) : null}
    </>
  );
}

function ShowMore({ onMore }: { onMore(): void }): JSX.Element {
  return (
    <button type="button" class="quiet" onClick={onMore}>
      Show more
    </button>
  );
}
