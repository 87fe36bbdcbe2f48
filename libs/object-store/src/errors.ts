/** What can go wrong with objects, by what the caller can do about it. */
import { TaggedError } from '@penstock/errors';

/** No answer, no room (ObjectsFull), or the object went while it was read. A put or delete may have taken place; both may be repeated. */
export class ObjectsUnavailable extends TaggedError {
  readonly tag: string = 'ObjectsUnavailable';
  constructor(problem: string, options?: ErrorOptions) {
    super(`the object storage is unavailable: ${problem}`, options);
  }
}

/** There is no room, until somebody makes some: a put repeated within minutes finds none either. What is stored is read. */
export class ObjectsFull extends ObjectsUnavailable {
  override readonly tag = 'ObjectsFull';
}

/** The bytes given are not those that were announced; nothing was stored. */
export class HashMismatch extends TaggedError {
  readonly tag = 'HashMismatch';
  readonly expected: string;
  readonly actual: string;
  constructor(expected: string, actual: string) {
    super(`the bytes have the SHA-256 ${actual}, not ${expected}`);
    this.expected = expected;
    this.actual = actual;
  }
}

/** More bytes than allowed; nothing was stored. */
export class ObjectTooLarge extends TaggedError {
  readonly tag = 'ObjectTooLarge';
  readonly bytesMax: number;
  constructor(bytesMax: number) {
    super(`there are more than ${bytesMax} bytes`);
    this.bytesMax = bytesMax;
  }
}

/** What is stored is not what was put there. */
export class ObjectDamaged extends TaggedError {
  readonly tag = 'ObjectDamaged';
  readonly key: string;
  constructor(key: string, problem: string, options?: ErrorOptions) {
    super(`the object ${key} is damaged: ${problem}`, options);
    this.key = key;
  }
}

/** The call breaks the port's contract. */
export class ObjectUsageError extends TaggedError {
  readonly tag = 'ObjectUsageError';
}
