/**
 * Whether a runner may store for an attempt: the owner of its run says so, who alone grants. An answer holds for a few
 * seconds, so that ten thousand files do not ask ten thousand times.
 */
import { machineTime, type Time } from '@penstock/async';
import { subjects, type AttemptReply, type AttemptRequest, type Bus, type LivingAttempt } from '@penstock/bus';
import { BadUserInput, Forbidden, Unavailable } from '@penstock/errors';
import type { ByAttempt } from '@penstock/artifacts';

const OWNER_MS_MAX = 10_000;
const HOLDS_MS = 5_000;
const REMEMBERED_MAX = 1_000;
const PARTITIONS_MAX = 65_536;

interface Remembered {
  readonly attempt: Promise<LivingAttempt>;
  readonly until: number;
}

export class Grants {
  readonly #bus: Bus;
  readonly #time: Pick<Time, 'bootNow'>;
  readonly #remembered = new Map<string, Remembered>();

  constructor(bus: Bus, time: Pick<Time, 'bootNow'> = machineTime) {
    this.#bus = bus;
    this.#time = time;
  }

  /** @throws Forbidden where the attempt does not live with this runner; Unavailable where its owner does not answer */
  async of(runner: string, { ref, partition }: ByAttempt): Promise<LivingAttempt> {
    if (!Number.isInteger(partition) || partition < 0 || partition >= PARTITIONS_MAX)
      throw new BadUserInput("'partition' is to be the number of one.");
    const { runId, stage, attempt, session, credit } = ref;
    const id = JSON.stringify([runner, partition, runId, stage, attempt, session, credit]);
    const known = this.#remembered.get(id);
    if (known !== undefined && known.until > this.#time.bootNow()) return await known.attempt;
    const asked = this.#ask(partition, { ref: { runId, stage, attempt, session, credit }, runner });
    this.#remembered.delete(id);
    this.#remembered.set(id, { attempt: asked, until: this.#time.bootNow() + HOLDS_MS });
    asked.catch(() => this.#remembered.delete(id));
    for (const oldest of this.#remembered.keys()) {
      if (this.#remembered.size <= REMEMBERED_MAX) break;
      this.#remembered.delete(oldest);
    }
    return await asked;
  }

  async #ask(partition: number, request: AttemptRequest): Promise<LivingAttempt> {
    let reply: AttemptReply;
    try {
      reply = await this.#bus.requestRetrying<AttemptRequest, AttemptReply>(
        subjects.owner(partition, 'attempt'),
        request,
        { deadlineMs: OWNER_MS_MAX, timeoutMs: OWNER_MS_MAX / 2 },
      );
    } catch (error) {
      throw new Unavailable('The owner of the run does not answer; try again.', { cause: error });
    }
    if (!reply.ok) throw new Unavailable('The owner of the run cannot say; try again.');
    if (reply.attempt === null) throw new Forbidden('This attempt does not run on this runner.');
    return reply.attempt;
  }
}
