/** A secret that was just made: shown this once, until somebody says that they have it. */
import type { Signal } from '@preact/signals';
import type { JSX } from 'preact';

export function ShownOnce({ secret }: { readonly secret: Signal<string | null> }): JSX.Element | null {
  if (secret.value === null) return null;
  return (
    <p class="hint" role="status">
      Copy it now, it is shown this once: <code>{secret.value}</code>{' '}
      <button type="button" class="quiet" onClick={() => (secret.value = null)}>
        I have it
      </button>
    </p>
  );
}
