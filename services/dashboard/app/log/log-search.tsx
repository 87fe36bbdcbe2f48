/** Search across all lines of a stage, those that are not drawn included. */
import { useSignal } from '@preact/signals';
import type { JSX } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import type { LineStore } from './line-store.ts';

const FOUND_MAX = 10_000;
const SLICE_MS = 10;

interface Props {
  readonly lines: LineStore;
  onFound(number: number | null): void;
}

export function LogSearch({ lines, onFound }: Props): JSX.Element {
  const found = useSignal<readonly number[] | null>(null);
  const at = useSignal(0);
  const latest = useRef(0);
  useEffect(
    () => () => {
      latest.current += 1;
    },
    [],
  );

  async function search(text: string): Promise<void> {
    latest.current += 1;
    const own = latest.current;
    const needle = text.toLowerCase();
    if (needle === '') {
      found.value = null;
      onFound(null);
      return;
    }
    const numbers: number[] = [];
    let since = performance.now();
    for (const page of lines.find(needle)) {
      numbers.push(...page.slice(0, FOUND_MAX - numbers.length));
      if (numbers.length >= FOUND_MAX) break;
      if (performance.now() - since < SLICE_MS) continue;
      await new Promise((resolve) => setTimeout(resolve));
      if (latest.current !== own) return;
      since = performance.now();
    }
    found.value = numbers;
    at.value = 0;
    onFound(numbers[0] ?? null);
  }

  const step = (by: number): void => {
    const { length } = found.value ?? [];
    if (length === 0) return;
    at.value = (at.value + by + length) % length;
    onFound(found.value?.[at.value] ?? null);
  };
  return (
    <div class="log-search" role="search">
      <input
        id="log-search"
        type="search"
        placeholder="Search in the log"
        aria-label="Search in the log"
        onInput={(event) => void search(event.currentTarget.value)}
        onKeyDown={(event) => {
          if (event.key === 'Enter') step(event.shiftKey ? -1 : 1);
          // Where the arrow keys go through the log.
          if (event.key === 'Escape') document.querySelector<HTMLElement>('.log-box')?.focus();
        }}
      />
      <span class="faint" role="status">
        {found.value === null
          ? ''
          : found.value.length === 0
            ? 'not found'
            : `${at.value + 1} of ${found.value.length}${found.value.length >= FOUND_MAX ? '+' : ''}`}
      </span>
    </div>
  );
}
