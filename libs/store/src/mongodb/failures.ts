/**
 * What the driver and the server say, as the port's errors. Decided by codes and labels, never by the words of a message.
 * `again` is for the call itself: whether the same command may do better in a moment, on this or another server.
 */
import {
  MongoAPIError,
  MongoCompatibilityError,
  MongoError,
  MongoErrorLabel,
  MongoNetworkError,
  MongoServerClosedError,
  MongoServerError,
  MongoServerSelectionError,
  MongoWriteConcernError,
} from 'mongodb';
import type { Failure } from '../failure.ts';

export interface MongoFailure extends Failure {
  readonly again: boolean;
}

/** The stored bytes are none that this adapter wrote. */
export class DecodeProblem extends Error {}
/** The server or the database is sound, and not for this release. */
export class FitProblem extends Error {}

const UPGRADE = 'Penstock needs MongoDB 7.0 or newer: upgrade the server, or name another one in SERVICE_STORE_URL';

export const DUPLICATE_KEY = 11_000;
export const NAMESPACE_NOT_FOUND = 26;

/** The server is changing its role, starting, stopping or cut off from the others; each passes by itself. */
const PASSING_CODES: ReadonlySet<number> = new Set([
  6,
  7,
  89,
  9001,
  11601, // the network between servers, and interrupted commands
  91,
  189,
  10107,
  10058,
  11600,
  11602,
  13435,
  13436, // shutting down, stepping down, not the primary (any more)
  24,
  46,
  112,
  246, // locks, write conflicts and snapshots
  50,
  64,
  262,
  202, // out of its own time, or of that for the write concern; the call's own deadline decides
  63,
  150,
  13388,
  133,
  134,
  187, // stale routing, no member to read from, reads that the majority did not confirm
]);

/** Nothing the caller or time can change: a person has to. */
const REFUSED_CODES: Readonly<Record<number, string>> = {
  13: 'the user of the address may not do this; it needs the role readWrite on the database',
  18: 'the server does not accept the user name or the password of the address',
  33: 'the database is being dropped, or is read-only',
  8000: 'the hosting service refuses the user of the address',
  14031: 'the disk of the server is full',
};

/** What was sent is malformed or too large, however often it is sent. */
const USAGE_CODES: ReadonlySet<number> = new Set([
  2, 9, 14, 17, 22, 40, 52, 53, 66, 72, 121, 10_334, 17_280, 17_419, 17_420, 40_415,
]);

export function failureOf(error: unknown): MongoFailure {
  if (error instanceof DecodeProblem)
    return { tag: 'corrupt', problem: error.message, again: false, cause: error.cause };
  if (error instanceof FitProblem)
    return { tag: 'incompatible', problem: error.message, again: false, cause: error.cause };
  if (error instanceof MongoWriteConcernError) {
    const { code, message } = error;
    return {
      tag: 'unavailable',
      problem: `the write is not confirmed by a majority of the servers (${Number(code)}: ${message})`,
      again: true,
      cause: error,
    };
  }
  if (error instanceof MongoServerError) return serverFailure(error);
  if (error instanceof MongoServerSelectionError) {
    const compatibility = compatibilityProblem(error);
    if (compatibility !== null)
      return { tag: 'incompatible', problem: `${compatibility}; ${UPGRADE}`, again: false, cause: error };
    // Before the network has said anything else; what it did say is in the reason's servers.
    return { tag: 'unavailable', problem: `no primary can be reached (${error.message})`, again: true, cause: error };
  }
  if (error instanceof MongoCompatibilityError)
    return { tag: 'incompatible', problem: error.message, again: false, cause: error };
  if (error instanceof MongoNetworkError)
    return { tag: 'unavailable', problem: `the connection failed (${error.message})`, again: true, cause: error };
  // Of the driver's own complaints only a server dropped from the topology passes; the others tell of a closed client.
  if (error instanceof MongoError)
    return {
      tag: 'unavailable',
      problem: error.message,
      again: !(error instanceof MongoAPIError) || error instanceof MongoServerClosedError,
      cause: error,
    };
  const message = error instanceof Error ? error.message : String(error);
  // The look-up of a name failed, or a certificate cannot be read: Node's own errors have a code.
  const isSystemError = typeof (error as { readonly code?: unknown } | null)?.code === 'string';
  return { tag: isSystemError ? 'unavailable' : 'usage', problem: message, again: false, cause: error };
}

/** The driver looks for a server until the time is up, also where the one there is too old for it; its own words say so. */
function compatibilityProblem({ reason }: MongoServerSelectionError): string | null {
  if (reason === undefined) return null;
  const told = [...reason.servers.values()]
    .map(({ error }) => error)
    .find((error) => error instanceof MongoCompatibilityError);
  return reason.compatibilityError ?? told?.message ?? null;
}

/** Of one write in a command, or of a command as a whole. */
export function codeFailure(code: number, message: string, again: boolean, cause?: unknown): MongoFailure {
  const said = `the server answered ${code}: ${message}`;
  if (again || PASSING_CODES.has(code)) return { tag: 'unavailable', problem: said, again: true, cause };
  const refusal = REFUSED_CODES[code];
  if (refusal !== undefined) return { tag: 'unavailable', problem: `${refusal} (${said})`, again: false, cause };
  if (USAGE_CODES.has(code)) return { tag: 'usage', problem: said, again: false, cause };
  return { tag: 'unavailable', problem: said, again: false, cause };
}

function serverFailure(error: MongoServerError): MongoFailure {
  return codeFailure(Number(error.code ?? 0), error.message, isTransient(error), error);
}

function isTransient(error: MongoError): boolean {
  return [
    MongoErrorLabel.RetryableWriteError,
    MongoErrorLabel.RetryableError,
    MongoErrorLabel.TransientTransactionError,
  ].some((label) => error.hasErrorLabel(label));
}
