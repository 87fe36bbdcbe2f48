/** What came of something that somebody did, said once and for a while; a refusal stays until it is read. */
import { signal } from '@preact/signals';
import type { JSX } from 'preact';
import { problemFrom } from '../api/http.ts';
import { Name } from './name.tsx';
import { session, signIn } from '../session/session.ts';

interface Notice {
  readonly id: number;
  readonly text: string;
  readonly isProblem: boolean;
}

const SHOWN_MS = 6_000;
const SHOWN_MAX = 5;

const notices = signal<readonly Notice[]>([]);
let count = 0;

/** Does it and says so; what is refused is said as the server says it. Whether it was done. */
export async function attempt(done: string, work: () => Promise<unknown>): Promise<boolean> {
  try {
    await work();
    say(done, false);
    return true;
  } catch (error) {
    say(problemFrom(error).message, true);
    return false;
  }
}

/** The same for what only who is signed in may do: who is not is led there. */
export async function attemptSignedIn(done: string, work: () => Promise<unknown>): Promise<boolean> {
  if (session.peek() !== null) return await attempt(done, work);
  signIn();
  return false;
}

function say(text: string, isProblem: boolean): void {
  count += 1;
  const notice = { id: count, text, isProblem };
  notices.value = [...notices.peek(), notice].slice(-SHOWN_MAX);
  if (!isProblem) setTimeout(() => close(notice), SHOWN_MS);
}

function close(notice: Notice): void {
  notices.value = notices.peek().filter((each) => each !== notice);
}

export function Notices(): JSX.Element {
  return (
    <div class="notices" role="status" aria-live="polite">
      {notices.value.map((notice) => (
        <p key={notice.id} class={notice.isProblem ? 'notice bad' : 'notice'}>
          <Name text={notice.text} />
          <button type="button" class="quiet" aria-label="Close" onClick={() => close(notice)}>
            ×
          </button>
        </p>
      ))}
    </div>
  );
}
