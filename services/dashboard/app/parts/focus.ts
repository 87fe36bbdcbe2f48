/** Where the keyboard stands when what it stood on is gone: a link to another page, a button that has done its work. */
import { useEffect, useRef } from 'preact/hooks';

/** Tab goes to the first control of the page from there, and a screen reader reads on from there. */
export function focusContent(): void {
  document.getElementById('main')?.focus({ preventScroll: true });
}

/** For buttons that go with what they have changed, which is `state`. To be called when one of them is used. */
export function useKeptFocus(state: unknown): () => void {
  const isUsed = useRef(false);
  useEffect(() => {
    if (!isUsed.current) return;
    isUsed.current = false;
    if (document.activeElement === null || document.activeElement === document.body) focusContent();
  }, [state]);
  return () => {
    isUsed.current = true;
  };
}
