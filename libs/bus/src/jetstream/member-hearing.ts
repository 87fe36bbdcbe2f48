/**
 * The memberships of schedulers, heard and not watched: for those who may make no consumer at the broker (P37). Each renewal is a
 * publish, which whoever listens hears too. It owns a timer for each member: one that is silent for longer than a membership lives
 * is gone, and one that leaves says so. What is heard may have been refused by the broker, so it is a hint; nothing is decided by it.
 */
import type { Bus } from '../wire/bus.ts';
import { parseJson } from '../wire/body.ts';
import { wireOf } from '../wire/nats-bus.ts';
import { MEMBERSHIP_MS } from '../contract/protocol-times.ts';
import { buckets } from '../contract/subjects.ts';
import type { LeaseEvent, LeaseWatch } from './lease-watch.ts';

/** Renewed three times in this. */
const SILENT_MS = MEMBERSHIP_MS * 1.5;
const MEMBERS_MAX = 1_000;

export function hearMembers<V>(bus: Bus, handler: (event: LeaseEvent<V>) => void): Pick<LeaseWatch, 'stop'> {
  const wire = wireOf(bus);
  const prefix = `$KV.${buckets.members}.`;
  const silence = new Map<string, NodeJS.Timeout>();
  const gone = (key: string): void => {
    clearTimeout(silence.get(key));
    if (silence.delete(key)) handler({ kind: 'expired', key, revision: 0 });
  };
  const receive = wire.received(({ subject, data }) => {
    const key = subject.slice(prefix.length);
    const known = silence.get(key);
    if (data.length === 0) return gone(key);
    if (known !== undefined) return void known.refresh();
    if (silence.size >= MEMBERS_MAX) return;
    let value: V;
    try {
      value = parseJson<V>(data);
    } catch (cause) {
      return wire.log.warn({ err: cause, key }, 'a membership that is not JSON');
    }
    silence.set(
      key,
      setTimeout(() => gone(key), SILENT_MS),
    );
    handler({ kind: 'put', key, value, revision: 0 });
  });
  const subscription = wire.connection.subscribe(`${prefix}*`, {
    callback: (error, message) => {
      if (error === null) receive(message);
      else wire.log.error({ err: error }, 'the memberships of schedulers are not heard');
    },
  });
  return {
    stop: () => {
      subscription.unsubscribe();
      for (const timer of silence.values()) clearTimeout(timer);
      silence.clear();
    },
  };
}
