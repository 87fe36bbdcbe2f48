/** What is seen of a box that scrolls, as it is scrolled and as its size changes. */
import { useSignal } from '@preact/signals';
import { useMemo } from 'preact/hooks';
import type { Seen } from './drawn-part.ts';

/** Before the box is measured: a large screen. */
const UNMEASURED: Seen = { top: 0, left: 0, width: 2_000, height: 1_000 };
/** `box` is the `ref` of the element that scrolls, and `onScroll` goes to it too. */
export function useSeen(): { readonly seen: Seen; box(element: HTMLElement | null): void; onScroll(): void } {
  const seen = useSignal(UNMEASURED);
  const { box, onScroll } = useMemo(() => {
    let element: HTMLElement | null = null;
    const look = (): void => {
      if (element === null) return;
      const { scrollTop: top, scrollLeft: left, clientWidth: width, clientHeight: height } = element;
      const { value } = seen;
      if (top !== value.top || left !== value.left || width !== value.width || height !== value.height)
        seen.value = { top, left, width, height };
    };
    const observer = new ResizeObserver(look);
    return {
      onScroll: look,
      box(next: HTMLElement | null): void {
        observer.disconnect();
        element = next;
        if (next !== null) observer.observe(next);
      },
    };
  }, []);
  return { seen: seen.value, box, onScroll };
}
