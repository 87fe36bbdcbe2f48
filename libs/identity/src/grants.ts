/**
 * What others let a user do, as this process knows it. It owns auth's answers of the last minute and the questions under way; what
 * auth changes is told by the bucket of revocations, and asked anew from then on.
 *
 *  GRANTS-1 An answer that was asked for before a change is not kept behind it.
 *  GRANTS-2 While auth does not answer, nothing is granted: a user has its own all the same.
 */
import type { Grant } from './access-messages.ts';
import { Remembered } from './remembered.ts';
import type { Revocations } from './revocations.ts';

export interface GrantsOptions {
  readonly revocations: Pick<Revocations, 'certain' | 'onAccessChanged'>;
  /** Asks auth (`svc.auth.access.of`). */
  readonly grantsOf: (userId: string) => Promise<readonly Grant[]>;
  /** Milliseconds since 1970; default the system clock. */
  readonly now?: (() => number) | undefined;
}

interface Known {
  readonly grants: readonly Grant[];
  readonly until: number;
}

const NONE: readonly Grant[] = [];
const KEPT_MS = 60_000;
/** Nobody is asked for each request while nobody answers. */
const SILENT_MS = 5_000;
const KEPT_MAX = 10_000;

export class Grants {
  readonly #options: GrantsOptions;
  readonly #now: () => number;
  readonly #known = new Remembered<Known>(KEPT_MAX);
  readonly #asking = new Map<string, Promise<readonly Grant[]>>();

  constructor(options: GrantsOptions) {
    this.#options = options;
    this.#now = options.now ?? Date.now;
    options.revocations.onAccessChanged((userId) => {
      this.#known.delete(userId);
      this.#asking.delete(userId);
    });
  }

  of(userId: string): readonly Grant[] | Promise<readonly Grant[]> {
    const known = this.#known.get(userId);
    if (known !== undefined && known.until > this.#now() && this.#options.revocations.certain) return known.grants;
    let asking = this.#asking.get(userId);
    if (asking === undefined) {
      asking = this.#ask(userId, () => this.#asking.get(userId) === asking);
      this.#asking.set(userId, asking);
    }
    return asking;
  }

  /** GRANTS-1: `isAsking` is false from a change on. */
  async #ask(userId: string, isAsking: () => boolean): Promise<readonly Grant[]> {
    const found = await this.#options.grantsOf(userId).then(
      (grants): Known => ({ grants, until: this.#now() + KEPT_MS }),
      (): Known => ({ grants: NONE, until: this.#now() + SILENT_MS }),
    );
    if (isAsking()) {
      this.#asking.delete(userId);
      this.#known.set(userId, found);
    }
    return found.grants;
  }
}
