/**
 * Which attempts live with which runner, as the owners of their runs say, and how many bytes of each have been stored. An answer holds for
 * some seconds. Bounded in memory by runner: one that names ever more attempts has its own forgotten.
 */
import { type AttemptReply, type AttemptRequest, type Bus, subjects } from '@penstock/bus';
import { partitionOf, type RunId } from '@penstock/run';

interface Named {
  readonly runId: RunId;
  readonly stage: string;
  readonly attempt: number;
}

interface Known {
  /** Null: no such attempt lives with the runner. Rejects where its owner does not say. */
  tenant: Promise<string | null>;
  until: number;
  bytes: number;
}

const HOLDS_MS = 5_000;
const OWNER_MS_MAX = 4_000;
/** More than a runner has slots. */
const ATTEMPTS_MAX = 500;
/** More than a server has runners at a time. */
const RUNNERS_MAX = 1_000;

export class LivingAttempts {
  readonly #bus: Bus;
  readonly #partitions: number;
  readonly #ownerMs: number;
  readonly #ofRunner = new Map<string, Map<string, Known>>();

  constructor(bus: Bus, partitions: number, ownerMs = OWNER_MS_MAX) {
    this.#bus = bus;
    this.#partitions = partitions;
    this.#ownerMs = ownerMs;
  }

  of(runner: string, named: Named): Known {
    const { runId, stage, attempt } = named;
    const attempts = this.#ofRunner.get(runner) ?? new Map<string, Known>();
    const id = `${runId}\n${attempt}\n${stage}`;
    const known = attempts.get(id) ?? { tenant: Promise.resolve(null), until: -Infinity, bytes: 0 };
    if (known.until <= performance.now()) {
      known.until = performance.now() + HOLDS_MS;
      known.tenant = this.#ask(runner, named);
      known.tenant.catch(() => (known.until = -Infinity));
    }
    touch(this.#ofRunner, runner, attempts, RUNNERS_MAX);
    touch(attempts, id, known, ATTEMPTS_MAX);
    return known;
  }

  async #ask(runner: string, ref: Named): Promise<string | null> {
    const reply = await this.#bus.requestRetrying<AttemptRequest, AttemptReply>(
      subjects.owner(partitionOf(ref.runId, this.#partitions), 'attempt'),
      { ref, runner },
      { deadlineMs: this.#ownerMs },
    );
    if (!reply.ok) throw new Error('the owner of the run cannot say');
    return reply.attempt?.tenant ?? null;
  }
}

/** The one named last comes last; of too many the first goes. */
function touch<T>(all: Map<string, T>, name: string, value: T, max: number): void {
  all.delete(name);
  all.set(name, value);
  const [longest] = all.keys();
  if (all.size > max && longest !== undefined) all.delete(longest);
}
