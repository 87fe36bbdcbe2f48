/** Everything that this package throws; `tag` says which of them it is. */
import { TaggedError } from '@penstock/errors';

/** What the other end of a line said makes no sense: the stage has its hands in it, or its image has other tools than ours. */
export class BadLine extends TaggedError {
  readonly tag = 'BadLine';

  constructor(said: string) {
    super(`the guard of the Pod said something that makes no sense: ${said.slice(0, 200)}`);
  }
}

/** The API server's refusal, or none at all. */
export class ClusterError extends TaggedError {
  readonly tag = 'ClusterError';
  /** The HTTP status; 0: there was no answer. */
  readonly code: number;

  constructor(code: number, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}

/** What a stage has left cannot be brought out of its Pod. */
export class NotBroughtOut extends TaggedError {
  readonly tag = 'NotBroughtOut';
}

/** The cluster that the settings name cannot be used. */
export class NoCluster extends TaggedError {
  readonly tag = 'NoCluster';
}

/** Of a 403. A server that has just started answers before it has read its roles. */
const PASSING_REFUSAL = /exceeded quota|service ?account .* not found|RBAC: .* not found/i;

/** Waiting may help: a server that restarts or is busy, a quota that is full, a namespace whose account is not made yet. */
export function mayPass({ code, message }: ClusterError): boolean {
  if (code === 0 || code === 429 || code >= 500) return true;
  return code === 403 && PASSING_REFUSAL.test(message);
}
