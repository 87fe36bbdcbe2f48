/** Answers the ingest what opens a connected repository, sealed to the key in its question (P31). */
import { subjects, type Bus, type BusSubscription, type CloneAnswer, type CloneRequest } from '@penstock/bus';
import { sealTo } from '@penstock/identity';
import type { Log } from '@penstock/telemetry/log';
import type { CloneSecrets } from '../model/clone-secrets.ts';

export interface CloneAnswersOptions {
  readonly bus: Bus;
  readonly clones: CloneSecrets;
  readonly log: Pick<Log, 'warn'>;
}

/** Who asks is the broker's to check: the ingest alone may. What cannot be answered is asked again. */
export function answerCloneRequests({ bus, clones, log }: CloneAnswersOptions): BusSubscription {
  return bus.respond<CloneRequest, CloneAnswer>(
    subjects.cloneSecret,
    async ({ sealTo: publicKey, ...asked }) => {
      try {
        // It is the ingest that looks for proofs, and that clones nothing without one.
        const found = await clones.find(asked, false);
        if (found.kind !== 'found') return found;
        return { kind: 'sealed', sealed: await sealTo(publicKey, found.secret) };
      } catch (error) {
        log.warn({ err: error }, 'what opens a repository could not be looked up; it is asked again');
        return { kind: 'unavailable' };
      }
    },
    { queue: 'auth' },
  );
}
