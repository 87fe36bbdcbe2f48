/** A word and what it is, in a list of class `facts`. */
import type { ComponentChildren, JSX } from 'preact';
import { Name } from './name.tsx';

export function Fact({
  title,
  children,
}: {
  readonly title: string;
  readonly children: ComponentChildren;
}): JSX.Element {
  return (
    <div>
      <dt>
        <Name text={title} />
      </dt>
      <dd>{children}</dd>
    </div>
  );
}
