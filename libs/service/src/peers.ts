/**
 * How many processes of a service there are. Each tells the others that it lives, and counts those it has heard of lately;
 * nothing is stored, and nobody decides. For what may be a little wrong for some seconds, such as a share of a rate limit:
 * while the broker is away each soon counts itself alone.
 */
import { randomUUID } from 'node:crypto';
import { subjects, type Bus, type PeerService } from '@penstock/bus';

interface Alive {
  readonly id: string;
  readonly leaves?: true | undefined;
}

export interface PeerCount {
  /** This process included: 1 or more. */
  count(): number;
  /** Tells the others, and counts no more. */
  stop(): void;
}

const EVERY_MS = 2_000;
/** Three that were not heard, and some time on the way. */
const SILENT_MS_MAX = 7_000;
/** No installation has as many; whoever invents names must not fill the memory. */
const PEERS_MAX = 1_000;

/** `monotonicNow`: milliseconds of a clock that never goes back. */
export function countPeers(
  bus: Bus,
  service: PeerService,
  monotonicNow: () => number = () => performance.now(),
): PeerCount {
  const subject = subjects.alive(service);
  const id = randomUUID();
  const heardAt = new Map<string, number>();
  const tell = (): void => bus.publish<Alive>(subject, { id });

  const subscription = bus.subscribe<Alive>(subject, (message) => {
    if (message.id === id) return;
    if (message.leaves === true) {
      heardAt.delete(message.id);
      return;
    }
    const isNew = !heardAt.has(message.id);
    if (isNew && heardAt.size >= PEERS_MAX) return;
    heardAt.set(message.id, monotonicNow());
    // It may have come after our last message: it need not wait for the next one.
    if (isNew) tell();
  });
  tell();
  const timer = setInterval(tell, EVERY_MS);
  timer.unref();

  return {
    count() {
      for (const [peer, at] of heardAt) {
        if (monotonicNow() - at > SILENT_MS_MAX) heardAt.delete(peer);
      }
      return 1 + heardAt.size;
    },
    stop() {
      clearInterval(timer);
      subscription.stop();
      heardAt.clear();
      bus.publish<Alive>(subject, { id, leaves: true });
    },
  };
}
