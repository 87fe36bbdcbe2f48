/** What an administrator holds up (P35): keys of the bucket `controls`, without a time to live, until they are resumed. */
import { hash } from 'node:crypto';

/** Everything; the stages of a key; those that ask for a label; or what would go to a runner. */
export type ControlTarget =
  | { readonly kind: 'all' }
  | { readonly kind: 'key'; readonly key: string }
  | { readonly kind: 'label'; readonly label: string }
  | { readonly kind: 'runner'; readonly runner: string };

export interface Control {
  readonly target: ControlTarget;
  /** Milliseconds since 1970. */
  readonly since: number;
  /** As the audit log names them. */
  readonly by: string;
  /** For people. */
  readonly reason?: string | undefined;
  /** Over since then; it is kept for a while, for what waited meanwhile has not waited in vain. */
  readonly resumedAt?: number | undefined;
}

/** One token, whatever the key or label is called. */
export function controlName(target: ControlTarget): string {
  switch (target.kind) {
    case 'all':
      return 'all';
    case 'key':
      return `key-${hash('sha256', target.key, 'base64url')}`;
    case 'label':
      return `label-${hash('sha256', target.label, 'base64url')}`;
    case 'runner':
      return `runner-${hash('sha256', target.runner, 'base64url')}`;
  }
}
