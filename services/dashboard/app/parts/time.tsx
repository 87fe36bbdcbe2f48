/** Times as people say them, with the exact one at hand, and going on by themselves. */
import { signal } from '@preact/signals';
import { createContext, type JSX } from 'preact';
import { useContext } from 'preact/hooks';
import { durationOf } from './duration.ts';

/** Each second, while somebody looks. */
const now = signal(Date.now());
setInterval(() => {
  if (document.visibilityState === 'visible') now.value = Date.now();
}, 1_000);

export function Ago({ at }: { readonly at: string }): JSX.Element {
  return (
    <time dateTime={at} title={exact(at)}>
      {agoOf(now.value - Date.parse(at))}
    </time>
  );
}

/** The time that is looked at, where that is not now: what had not ended by then lasted until then. */
export const AsOf = createContext<string | null>(null);

/** From one time to another, or to now. */
export function Lasted({ from, to }: { readonly from: string | null; readonly to: string | null }): JSX.Element | null {
  const asOf = useContext(AsOf);
  if (from === null) return null;
  const until = to ?? asOf;
  const ms = (until === null ? now.value : Date.parse(until)) - Date.parse(from);
  return <span title={`${exact(from)} to ${until === null ? 'now' : exact(until)}`}>{durationOf(ms)}</span>;
}

function agoOf(ms: number): string {
  if (ms < 5_000) return 'now';
  const [count, unit] = [
    [ms / 1_000, 's'],
    [ms / 60_000, 'min'],
    [ms / 3_600_000, 'h'],
    [ms / 86_400_000, 'd'],
  ].findLast(([each]) => Number(each) >= 1) ?? [0, 's'];
  return `${Math.floor(Number(count))} ${String(unit)} ago`;
}

export function exact(at: string): string {
  const date = new Date(at);
  return Number.isNaN(date.getTime()) ? at : date.toLocaleString(undefined, { dateStyle: 'medium', timeStyle: 'long' });
}
