/** Asks the store whether a session is active, for a gateway that cannot hear of revocations, and so cannot ask auth either. */
import { sessionsSpec } from '@penstock/identity';
import { unavailableStore } from '@penstock/run-client';
import type { DocumentStore } from '@penstock/store';

/** The answer is for `GatewayOptions.isSessionActive`. The store has to be opened with auth's sessions among its collections. */
export function storedSessions(
  store: Pick<DocumentStore, 'collection'>,
  now: () => number = Date.now,
): (sessionId: string) => Promise<boolean> {
  const sessions = store.collection(sessionsSpec);
  return async (sessionId) => {
    const session = await sessions.get(sessionId).catch((error: unknown) => {
      throw unavailableStore(error);
    });
    return session !== null && session.expiresAt > now();
  };
}
