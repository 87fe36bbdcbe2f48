/**
 * The log of a stage: only what is seen of it is drawn, whatever its length.
 *
 *  PANE-1 All rows are equally high, so that where a line stands is a matter of counting.
 *  PANE-2 No element is higher than browsers can make one: of more lines than fit, a pixel of scrolling is worth several.
 *  PANE-3 While it follows, the last line stays in view; whoever scrolls away stops that, and `j` goes on with it.
 */
import { useSignal, useSignalEffect } from '@preact/signals';
import type { JSX } from 'preact';
import { useEffect, useLayoutEffect, useMemo, useRef } from 'preact/hooks';
import type { RunStatus } from '../api/operations.ts';
import { useKeys } from '../parts/keys.ts';
import { Name } from '../parts/name.tsx';
import { attempt } from '../parts/notices.tsx';
import { go, withQuery } from '../router.ts';
import { session, signIn } from '../session/session.ts';
import { plainText } from './ansi.ts';
import { LogLine, ROW_HEIGHT } from './log-line.tsx';
import { LogSearch } from './log-search.tsx';
import type { RunLog } from './run-log.ts';
import { Window } from './window.ts';

interface Props {
  readonly log: RunLog;
  readonly stage: string;
  /** The line of the address. */
  readonly line: number | null;
  readonly status: RunStatus;
}

const OVERSCAN = 20;
const COPIED_LINES_MAX = 200_000;

export function LogPane({ log, stage, line, status }: Props): JSX.Element {
  const lines = useMemo(() => log.lines(stage), [log, stage]);
  // Drawn once a frame at most, however fast lines come.
  const count = useSignal(lines.count);
  const scrollTop = useSignal(0);
  const height = useSignal(400);
  // Of a stage that failed the end is what one has come for.
  const isFollowing = useSignal(line === null && (status === 'RUNNING' || status === 'FAILED'));
  const hasTimes = useSignal(false);
  const found = useSignal<number | null>(null);
  const box = useRef<HTMLDivElement>(null);
  const wanted = useRef(line);

  useSignalEffect(() => {
    void log.changed(stage).value;
    const frame = requestAnimationFrame(() => {
      count.value = lines.count;
    });
    return () => cancelAnimationFrame(frame);
  });
  useEffect(() => {
    if (box.current === null) return;
    const observer = new ResizeObserver(([entry]) => {
      height.value = entry?.contentRect.height ?? 400;
    });
    observer.observe(box.current);
    return () => observer.disconnect();
  }, []);

  const view = new Window(count.value, ROW_HEIGHT, height.value);
  const scrollTo = (number: number): void => {
    isFollowing.value = false;
    box.current?.scrollTo({ top: view.scrollOf(number) });
  };
  useLayoutEffect(() => {
    if (isFollowing.value) box.current?.scrollTo({ top: view.height });
    // The line of the address is not there before its turn.
    if (wanted.current === null || wanted.current > count.value) return;
    scrollTo(wanted.current);
    wanted.current = null;
  });
  useKeys([
    { key: 'j', says: 'Follow the log', run: () => (isFollowing.value = !isFollowing.value) },
    { key: 't', says: 'Show times in the log', run: () => (hasTimes.value = !hasTimes.value) },
    { key: 's', says: 'Search in the log', run: () => document.getElementById('log-search')?.focus() },
    { key: 'Home', says: 'Begin of the log', run: () => scrollTo(1) },
    { key: 'End', says: 'End of the log, as it grows', run: () => (isFollowing.value = true) },
  ]);

  const { first, last, offset } = view.range(scrollTop.value, OVERSCAN);
  const shown = Array.from({ length: Math.max(0, last - first + 1) }, (_, index) => first + index);
  return (
    <div class="log">
      <div class="log-bar">
        <LogSearch
          lines={lines}
          onFound={(number) => {
            found.value = number;
            if (number !== null) scrollTo(number);
          }}
        />
        <span class="faint log-count">
          {count.value.toLocaleString()} {count.value === 1 ? 'line' : 'lines'}
        </span>
        <button
          type="button"
          class="quiet"
          aria-pressed={isFollowing.value}
          onClick={() => (isFollowing.value = !isFollowing.value)}
        >
          Follow
        </button>
        <button
          type="button"
          class="quiet"
          aria-pressed={hasTimes.value}
          onClick={() => (hasTimes.value = !hasTimes.value)}
        >
          Times
        </button>
        <button type="button" class="quiet" onClick={() => void attempt('Copied.', () => copy(lines))}>
          Copy
        </button>
      </div>
      <LogProblem log={log} />
      <div
        ref={box}
        class="log-box"
        tabIndex={0}
        role="region"
        aria-label="Log"
        onScroll={(event) => {
          const { scrollTop: top } = event.currentTarget;
          if (top < scrollTop.value && top + height.value < view.height - ROW_HEIGHT) isFollowing.value = false;
          scrollTop.value = top;
        }}
      >
        <div class="log-field" style={{ height: `${view.height}px` }}>
          <ol class="log-rows" style={{ transform: `translateY(${offset}px)` }}>
            {shown.map((number) => (
              <LogLine
                key={number}
                number={number}
                line={lines.line(number)}
                hasTime={hasTimes.value}
                isMarked={number === line || number === found.value}
                onMark={() => go(withQuery({ stage, line: String(number) }), { replace: true })}
              />
            ))}
          </ol>
        </div>
        {count.value === 0 && log.state.value !== 'refused' ? (
          <p class="faint">{status === 'RUNNING' ? 'Nothing was written yet.' : 'Nothing was written.'}</p>
        ) : null}
      </div>
    </div>
  );
}

function LogProblem({ log }: { readonly log: RunLog }): JSX.Element | null {
  const [state, problem] = [log.state.value, log.problem.value];
  if (problem === null || (state !== 'broken' && state !== 'refused')) return null;
  if (session.value === null && problem.code === 'UNAUTHENTICATED')
    return (
      <p class="hint">
        This server shows logs to those who are signed in.{' '}
        <button type="button" onClick={signIn}>
          Sign in
        </button>
      </p>
    );
  return (
    <p class="problem" role="status">
      <Name text={problem.message} />
    </p>
  );
}

async function copy(lines: ReturnType<RunLog['lines']>): Promise<void> {
  const { first, count } = lines;
  if (count - first >= COPIED_LINES_MAX)
    throw new Error(`This log is too long for the clipboard: penstock logs writes it to a file.`);
  const texts = Array.from({ length: count - first + 1 }, (_, index) =>
    plainText(lines.line(first + index)?.text ?? ''),
  );
  await navigator.clipboard.writeText(texts.join('\n'));
}
