import { TaggedError } from '@penstock/errors';

/** Broker or store could not be reached, or did not answer: an ordinary fault of a simulated world. */
export class SimOutage extends TaggedError {
  readonly tag = 'SimOutage';
}

/** Thrown in a callback by the world, to see what it costs. */
export class InjectedFault extends TaggedError {
  readonly tag = 'InjectedFault';
}

/** A rule of the protocols does not hold. */
export class Violation extends TaggedError {
  readonly tag = 'Violation';
  readonly rule: string;

  constructor(rule: string, message: string) {
    super(`${rule}: ${message}`);
    this.rule = rule;
  }
}
