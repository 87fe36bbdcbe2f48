/** What must not be done twice where a button is pressed twice: each time it would make another one. */
import { useRef } from 'preact/hooks';

/** Does the work unless what it was given before is still under way. */
export function useAlone(): (work: () => Promise<unknown>) => void {
  const isUnderWay = useRef(false);
  return (work) => {
    if (isUnderWay.current) return;
    isUnderWay.current = true;
    void work().finally(() => {
      isUnderWay.current = false;
    });
  };
}
