/** What a connected repository is read with: the name of a secret of its user's, or what the server has. */
import { useSignal } from '@preact/signals';
import type { JSX } from 'preact';
import { ask } from '../api/graphql.ts';
import { attempt } from '../parts/notices.tsx';

/** `connection`: its id. `name` null: there is none. */
export function CloneSecret({
  connection,
  name,
  onDone,
}: {
  readonly connection: string;
  readonly name: string | null;
  onDone(): void;
}): JSX.Element {
  const wanted = useSignal('');
  const set = (chosen: string | null): void => {
    const done = chosen === null ? 'It is read with what the server has.' : `It is read with the secret ${chosen}.`;
    void attempt(done, () => ask('SetCloneSecret', { id: connection, name: chosen })).then((isDone) => {
      if (!isDone) return;
      wanted.value = '';
      onDone();
    });
  };
  return (
    <details>
      <summary>
        {name === null ? (
          'Read with what the server has'
        ) : (
          <>
            Read with the secret <code>{name}</code>
          </>
        )}
      </summary>
      <form
        class="row form"
        onSubmit={(event) => {
          event.preventDefault();
          set(wanted.value);
        }}
      >
        <label>
          Name of a secret with a token, user:password or a private key{' '}
          <input
            required
            pattern="[A-Z_][A-Z0-9_]*"
            placeholder="CLONE_TOKEN"
            value={wanted.value}
            onInput={(event) => (wanted.value = event.currentTarget.value)}
          />
        </label>
        <button type="submit">Read with it</button>
        {name === null ? null : (
          <button type="button" class="quiet" onClick={() => set(null)}>
            Take {name} off
          </button>
        )}
      </form>
    </details>
  );
}
