/** Keys that do something: each page says which, the help shows those of the page that is open. */
import { signal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';

export interface Key {
  readonly key: string;
  readonly says: string;
  run(): void;
}

const sets = signal<readonly (readonly Key[])[]>([]);

/** Of a page that is over another one, its own keys count first. */
export function keysHere(): readonly Key[] {
  const seen = new Set<string>();
  return sets.value
    .toReversed()
    .flat()
    .filter(({ key }) => !seen.has(key) && seen.add(key));
}

export function useKeys(keys: readonly Key[]): void {
  const latest = useRef(keys);
  latest.current = keys;
  useEffect(() => {
    // What a key does is what it does now, and not when the page was opened.
    const own = keys.map(({ key, says }) => ({
      key,
      says,
      run: () => latest.current.find((each) => each.key === key)?.run(),
    }));
    sets.value = [...sets.peek(), own];
    return () => {
      sets.value = sets.peek().filter((each) => each !== own);
    };
  }, []);
}

document.addEventListener('keydown', (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
  if (document.querySelector('dialog[open]') !== null) return;
  if (event.key === 'Escape' && event.target instanceof HTMLInputElement) {
    // Out of the field, so that keys are keys again; a browser would empty one for searching.
    event.preventDefault();
    event.target.blur();
  }
  if (isTyping(event)) return;
  const found = keysHere().find(({ key }) => key === event.key);
  if (found === undefined) return;
  event.preventDefault();
  found.run();
});

function isTyping({ target }: KeyboardEvent): boolean {
  return (
    target instanceof HTMLElement &&
    (target.isContentEditable || ['INPUT', 'TEXTAREA', 'SELECT'].includes(target.tagName) || target.shadowRoot !== null)
  );
}
