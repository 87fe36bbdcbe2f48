/**
 * What waits, cut into announcements (P11) that are known to fit a message, however many label sets there are. What is left
 * over is announced by the next tick, which goes on where this one has stopped: a runner hears of every set in its turn.
 */
import type { Demand } from '@penstock/bus';

type Waiting = Demand['waiting'][number];

/** Of one announcement, as JSON: each is read by every runner and holds up what follows it. */
const MESSAGE_BYTES_MAX = 128 * 1024;
/** Announcements of one tick: half a MiB a second for every runner to read. */
const MESSAGES_MAX = 4;

export class DemandAnnouncer {
  /** The label set that comes first at the next tick. */
  #next = 0;
  #announced = false;

  /** What to announce now; one empty list says, once, that nothing waits any more. */
  take(waiting: readonly Waiting[]): (readonly Waiting[])[] {
    const hadSome = this.#announced;
    this.#announced = waiting.length > 0;
    if (waiting.length === 0) return hadSome ? [[]] : [];
    const messages: Waiting[][] = [];
    let index = this.#next % waiting.length;
    let room = 0;
    for (let taken = 0; taken < waiting.length; taken++) {
      const entry = waiting[index] as Waiting;
      const bytes = Buffer.byteLength(JSON.stringify(entry)) + 1;
      if (bytes > room || messages.length === 0) {
        if (messages.length === MESSAGES_MAX) break;
        messages.push([]);
        room = MESSAGE_BYTES_MAX;
      }
      // A set that no message carries has no runner either: the names of its labels alone are larger than a lease.
      if (bytes <= MESSAGE_BYTES_MAX) messages.at(-1)?.push(entry);
      room -= bytes;
      index = (index + 1) % waiting.length;
    }
    this.#next = index;
    return messages.filter((message) => message.length > 0);
  }
}
