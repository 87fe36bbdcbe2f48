/** Everything the bus throws, told apart by `tag`. `cause` is kept wherever there is one. */
import { TaggedError } from '@penstock/errors';

/** Nobody subscribes to the subject: the request reached no one. Safe to repeat. */
export class NoResponders extends TaggedError {
  readonly tag = 'NoResponders';
  readonly subject: string;
  constructor(subject: string) {
    super(`nobody answers ${subject}`);
    this.subject = subject;
  }
}

/** Sent, and no answer in time: whether it was handled is unknown. */
export class RequestTimeout extends TaggedError {
  readonly tag = 'RequestTimeout';
  readonly subject: string;
  readonly timeoutMs: number;
  constructor(subject: string, timeoutMs: number) {
    super(`no answer from ${subject} within ${timeoutMs} ms`);
    this.subject = subject;
    this.timeoutMs = timeoutMs;
  }
}

/** No connection to the broker. `sent: false`: nothing left this process; `true`: it broke before the answer came. */
export class BrokerAway extends TaggedError {
  readonly tag = 'BrokerAway';
  readonly sent: boolean;
  constructor(message: string, sent: boolean, options?: ErrorOptions) {
    super(message, options);
    this.sent = sent;
  }
}

/** What a responder (or its machinery) answers instead of a value. */
export type RemoteFailure =
  /** The request's body was not JSON. */
  | 'bad_request'
  /** The handler threw; its message is not passed on, it stands in the responder's log. */
  | 'failed'
  /** More requests are unanswered there than it takes: nothing was begun, repeat later. */
  | 'busy';

export class RemoteError extends TaggedError {
  readonly tag = 'RemoteError';
  readonly subject: string;
  readonly failure: RemoteFailure;
  constructor(subject: string, failure: RemoteFailure) {
    super(`${subject} answered ${failure}`);
    this.subject = subject;
    this.failure = failure;
  }
}

/** An answer that does not fit the protocol: not JSON, parts missing, or longer than is taken. */
export class BadReply extends TaggedError {
  readonly tag = 'BadReply';
  readonly subject: string;
  constructor(subject: string, why: string, options?: ErrorOptions) {
    super(`bad answer from ${subject}: ${why}`, options);
    this.subject = subject;
  }
}

/** The message is longer than the broker takes; nothing was sent. */
export class MessageTooLarge extends TaggedError {
  readonly tag = 'MessageTooLarge';
  readonly bytes: number;
  readonly bytesMax: number;
  constructor(subject: string, bytes: number, bytesMax: number) {
    super(`a message to ${subject} of ${bytes} bytes is over the broker's limit of ${bytesMax}`);
    this.bytes = bytes;
    this.bytesMax = bytesMax;
  }
}

/** The broker's permissions do not allow this connection to publish there. Retrying does not help. */
export class NotPermitted extends TaggedError {
  readonly tag = 'NotPermitted';
  readonly subject: string;
  constructor(subject: string, options?: ErrorOptions) {
    super(`the broker does not permit ${subject}`, options);
    this.subject = subject;
  }
}

/** JetStream's refusal of a stored publish or of an API call. `code` is its `err_code`, e.g. 10071 (wrong last sequence). */
export class StoreRefused extends TaggedError {
  readonly tag = 'StoreRefused';
  readonly subject: string;
  readonly code: number;
  readonly description: string;
  constructor(subject: string, code: number, description: string) {
    super(`${subject} refused: ${description} (${code})`);
    this.subject = subject;
    this.code = code;
    this.description = description;
  }
}

/** P9: the journal was set up for another number of partitions. */
export class PartitionsMismatch extends TaggedError {
  readonly tag = 'PartitionsMismatch';
  readonly stored: number;
  readonly configured: number;
  constructor(stored: number, configured: number) {
    super(
      `the journal was set up with ${stored} partition(s), but SERVICE_PARTITIONS asks for ${configured}: ` +
        `the number is fixed at set-up; start with SERVICE_PARTITIONS=${stored}`,
    );
    this.stored = stored;
    this.configured = configured;
  }
}

/** The broker is older than Penstock can trust. */
export class BrokerTooOld extends TaggedError {
  readonly tag = 'BrokerTooOld';
  constructor(version: string, floor: string) {
    super(
      `the broker is nats-server ${version}, but Penstock needs ${floor} or newer: older ones can lose acknowledged messages when killed`,
    );
  }
}

/** The lease's key is held by somebody else. */
export class LeaseHeld extends TaggedError {
  readonly tag = 'LeaseHeld';
  readonly key: string;
  constructor(bucket: string, key: string) {
    super(`the lease ${bucket}/${key} is held by another`);
    this.key = key;
  }
}

/** More log chunks are waiting than the writer takes: wait for `room()` before publishing. */
export class LogQueueFull extends TaggedError {
  readonly tag = 'LogQueueFull';
  constructor(waiting: number) {
    super(`${waiting} log chunks are waiting to be stored already`);
  }
}
