/** A part of a page that waits for what it has asked for. */
import type { ComponentChildren, JSX } from 'preact';
import type { Asked } from '../api/use-asked.ts';
import { Loading, ProblemNote } from './states.tsx';

export function WhenAsked<Data>({
  asked,
  what,
  children,
}: {
  readonly asked: Asked<Data>;
  readonly what: string;
  readonly children: (data: Data) => ComponentChildren;
}): JSX.Element {
  const [data, problem] = [asked.data.value, asked.problem.value];
  return (
    <>
      {problem === null ? null : <ProblemNote problem={problem} />}
      {data === null ? problem === null ? <Loading what={what} /> : null : children(data)}
    </>
  );
}
