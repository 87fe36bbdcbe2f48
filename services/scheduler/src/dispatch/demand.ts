/**
 * What waits, cut into announcements (P11) that are known to fit a message, however many label sets there are. What is left
 * over is announced by the next tick, which goes on where this one has stopped: a runner hears of every set in its turn. What some runner
 * could take comes first, and leaves one message of a tick to the rest.
 */
import type { Demand } from '@penstock/bus';

type Waiting = Demand['waiting'][number];

/** Of one announcement, as JSON: each is read by every runner and holds up what follows it. */
const MESSAGE_BYTES_MAX = 128 * 1024;
/** Announcements of one tick: half a MiB a second for every runner to read. */
const MESSAGES_MAX = 4;
/** More are of an announcement whose end was lost. */
const PARTS_MAX = 2 * MESSAGES_MAX;
const SCHEDULERS_MAX = 256;

export class DemandAnnouncer {
  /** The label set that comes first at the next tick, of those that some runner could take and of the others. */
  readonly #next: [served: number, others: number] = [0, 0];
  #announced = false;

  /** What to announce now; one empty list says, once, that nothing waits any more. */
  take([served, others]: readonly [served: readonly Waiting[], others: readonly Waiting[]]): (readonly Waiting[])[] {
    const hadSome = this.#announced;
    this.#announced = served.length + others.length > 0;
    if (!this.#announced) return hadSome ? [[]] : [];
    const messages = new Messages();
    this.#next[0] = messages.fill(served, this.#next[0], others.length === 0 ? MESSAGES_MAX : MESSAGES_MAX - 1);
    this.#next[1] = messages.fill(others, this.#next[1], MESSAGES_MAX);
    return messages.all;
  }
}

/** What others announce in several messages, put together again. */
export class DemandParts {
  /** By scheduler. */
  readonly #parts = new Map<string, (readonly string[])[][]>();

  /** The labels of the stages whose keys may have another slot; undefined: another part follows. */
  whole({ scheduler, waiting, more }: Demand): readonly (readonly string[])[] | undefined {
    const below = waiting.filter((each) => (each.below ?? each.count) > 0).map(({ labels }) => labels);
    const parts = [...(this.#parts.get(scheduler) ?? []), below];
    this.#parts.delete(scheduler);
    if (more !== true || parts.length >= PARTS_MAX) return parts.flat();
    // Those of schedulers that are gone.
    if (this.#parts.size >= SCHEDULERS_MAX) this.#parts.clear();
    this.#parts.set(scheduler, parts);
    return undefined;
  }
}

class Messages {
  readonly all: Waiting[][] = [];
  #room = 0;

  /** Goes through all of them from this one on, until there are so many messages; answers which comes first next time. */
  fill(waiting: readonly Waiting[], from: number, messagesMax: number): number {
    let index = waiting.length === 0 ? 0 : from % waiting.length;
    for (let taken = 0; taken < waiting.length; taken++) {
      if (!this.#add(waiting[index] as Waiting, messagesMax)) break;
      index = (index + 1) % waiting.length;
    }
    return index;
  }

  /** False: there is no room for it. */
  #add(entry: Waiting, messagesMax: number): boolean {
    const bytes = Buffer.byteLength(JSON.stringify(entry)) + 1;
    // A set that no message carries has no runner either: the names of its labels alone are larger than a lease.
    if (bytes > MESSAGE_BYTES_MAX) return true;
    if (bytes > this.#room) {
      if (this.all.length >= messagesMax) return false;
      this.all.push([]);
      this.#room = MESSAGE_BYTES_MAX;
    }
    this.all.at(-1)?.push(entry);
    this.#room -= bytes;
    return true;
  }
}
