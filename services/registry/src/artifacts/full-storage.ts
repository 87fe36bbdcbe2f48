/** Those whose files are refused for want of room cannot make any: whoever can reads of it in the log. */
import { machineTime, type Time } from '@penstock/async';
import { ObjectsFull, type ObjectStore } from '@penstock/object-store';
import type { Log } from '@penstock/telemetry/log';

/** It goes on for as long as nobody makes room. */
const TOLD_EVERY_MS = 10 * 60_000;

/** The same storage; what has no room in it is told once in a while. */
export function tellingWhenFull(
  objects: ObjectStore,
  log: Pick<Log, 'error'>,
  time: Pick<Time, 'bootNow'> = machineTime,
): ObjectStore {
  let toldAt = -Infinity;
  const told = async <T>(work: Promise<T>): Promise<T> => {
    try {
      return await work;
    } catch (error) {
      if (error instanceof ObjectsFull && time.bootNow() - toldAt >= TOLD_EVERY_MS) {
        toldAt = time.bootNow();
        log.error({ err: error }, 'the object storage has no room left: stages cannot keep files; make room there');
      }
      throw error;
    }
  };
  return {
    put: (...given) => told(objects.put(...given)),
    checkRoom: () => told(objects.checkRoom()),
    head: (key) => objects.head(key),
    get: (...given) => objects.get(...given),
    delete: (key) => objects.delete(key),
    list: (prefix) => objects.list(prefix),
    removeLeftovers: (olderThanMs) => objects.removeLeftovers(olderThanMs),
    ping: () => objects.ping(),
  };
}
