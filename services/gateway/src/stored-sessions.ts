/** Asks the store whether a session is active, for a gateway that cannot hear of revocations, and so cannot ask auth either. */
import { sessionsSpec, suspendedUsersSpec } from '@penstock/identity';
import { unavailableStore } from '@penstock/run-client';
import type { DocumentStore } from '@penstock/store';

/**
 * The answer is for `GatewayOptions.isSessionActive`. The store has to be opened with auth's sessions, and whom it has shut out, among its
 * collections.
 */
export function storedSessions(
  store: Pick<DocumentStore, 'collection'>,
  now: () => number = Date.now,
): (sessionId: string) => Promise<boolean> {
  const sessions = store.collection(sessionsSpec);
  const suspended = store.collection(suspendedUsersSpec);
  const isActive = async (sessionId: string): Promise<boolean> => {
    const session = await sessions.get(sessionId);
    // The sessions of who is shut out are kept, for when that is over.
    return session !== null && session.expiresAt > now() && (await suspended.get(session.userId)) === null;
  };
  return (sessionId) =>
    isActive(sessionId).catch((error: unknown) => {
      throw unavailableStore(error);
    });
}
