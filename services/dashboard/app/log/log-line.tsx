/** One line of a log. */
import type { JSX } from 'preact';
import { exact } from '../parts/time.tsx';
import { segmentsOf } from './ansi.ts';
import type { Line } from './line-store.ts';

/** In pixels; `log.css` has the same. */
export const ROW_HEIGHT = 20;
/** What is beyond is neither read nor copied from a screen. */
const CHARS_MAX = 2_000;

interface Props {
  readonly number: number;
  /** Null where the page had to let it go. */
  readonly line: Line | null;
  readonly hasTime: boolean;
  readonly isMarked: boolean;
  onMark(): void;
}

export function LogLine({ number, line, hasTime, isMarked, onMark }: Props): JSX.Element {
  if (line === null) return <li class="log-line gone">{number} is no longer kept by this page</li>;
  const beyond = line.text.length - CHARS_MAX;
  return (
    <li class={`log-line from-${/^[a-z]+/u.exec(line.stream)?.[0] ?? 'stdout'}${isMarked ? ' marked' : ''}`}>
      <button type="button" class="log-number" tabIndex={-1} title="Link to this line" onClick={onMark}>
        {number}
      </button>
      {hasTime ? <time title={exact(isoOf(line.at))}>{isoOf(line.at).slice(11, 23)}</time> : null}
      <span class="log-text">
        {line.stream.startsWith('service:') ? (
          <span class="faint">{line.stream.slice('service:'.length)} │ </span>
        ) : null}
        {segmentsOf(line.text, CHARS_MAX).map(({ text, classes, color, background }, index) =>
          classes === '' && color === undefined && background === undefined ? (
            text
          ) : (
            <span
              key={index}
              class={classes}
              style={{ ...(color === undefined ? {} : { color }), ...(background === undefined ? {} : { background }) }}
            >
              {text}
            </span>
          ),
        )}
        {beyond > 0 ? <span class="beyond">… {beyond.toLocaleString()} more characters</span> : null}
      </span>
    </li>
  );
}

function isoOf(at: number): string {
  return new Date(at).toISOString();
}
