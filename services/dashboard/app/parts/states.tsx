/** Pages without their content: nothing there, not yet there, not to be had; each says what to do next. */
import type { ComponentChildren, JSX } from 'preact';
import type { Problem } from '../api/http.ts';
import { session, signIn } from '../session/session.ts';
import { Name } from './name.tsx';

export function Empty({
  title,
  children,
}: {
  readonly title: string;
  readonly children?: ComponentChildren;
}): JSX.Element {
  return (
    <section class="empty">
      <h1>{title}</h1>
      {children}
    </section>
  );
}

export function Loading({ what }: { readonly what: string }): JSX.Element {
  return (
    <p class="loading" role="status">
      Loading {what} …
    </p>
  );
}

export function ProblemNote({ problem }: { readonly problem: Problem }): JSX.Element {
  const isStranger = session.value === null && ['UNAUTHENTICATED', 'FORBIDDEN'].includes(problem.code);
  if (isStranger)
    return (
      <Empty title="Sign in to read">
        <p>This server shows its runs to those who are signed in.</p>
        <p>
          <button type="button" onClick={signIn}>
            Sign in
          </button>
        </p>
      </Empty>
    );
  return (
    <p class="problem" role="alert">
      <Name text={problem.message} />
    </p>
  );
}
