import { describe, expect, it } from 'vitest';
import { causesOf, errorChain } from '../src/index.ts';

function roundChain(): Error {
  const error = new Error('round');
  error.cause = error;
  return error;
}

describe('the chain of causes', () => {
  it('lists an error first and then each cause down to the innermost', () => {
    const innermost = new Error('disk full');
    const middle = new Error('saving failed', { cause: innermost });
    const outermost = new Error('the run is lost', { cause: middle });
    expect(causesOf(outermost)).toEqual([outermost, middle, innermost]);
  });

  it('lists a thrown value that is no error, also as a cause', () => {
    expect(causesOf('odd')).toEqual(['odd']);
    const error = new Error('outer', { cause: { reason: 7 } });
    expect(causesOf(error)).toEqual([error, { reason: 7 }]);
  });

  it('ends where a cause is its own cause', () => {
    expect(causesOf(roundChain()).length).toBeLessThan(20);
    expect(JSON.stringify(errorChain(roundChain())).length).toBeLessThan(10_000);
  });

  it('becomes a value with the kind, the message and the plain fields of every error', () => {
    const cause = Object.assign(new TypeError('disk full'), { errcode: 13, retryable: false, socket: { fd: 4 } });
    const logged = errorChain(new Error('saving failed', { cause }));
    expect(logged).toMatchObject({
      type: 'Error',
      message: 'saving failed',
      cause: { type: 'TypeError', message: 'disk full', errcode: 13, retryable: false },
    });
    expect(logged.cause).not.toHaveProperty('socket');
  });

  it('shows the stack of the innermost error only', () => {
    const logged = errorChain(new Error('outer', { cause: new Error('inner') }));
    expect(logged.stack).toBeUndefined();
    expect(logged.cause?.stack).toContain('inner');
  });

  it('shows at most ten errors of an AggregateError', () => {
    const errors = Array.from({ length: 25 }, (_, at) => new Error(`number ${at}`));
    const logged = errorChain(new AggregateError(errors, 'many'));
    expect(logged.errors?.map(({ message }) => message)).toEqual(errors.slice(0, 10).map(({ message }) => message));
  });

  it('describes a value that no JSON can hold', () => {
    const round: Record<string, unknown> = {};
    round['self'] = round;
    expect(errorChain(round)).toEqual({ type: 'object', message: '[object Object]' });
    expect(errorChain(undefined)).toEqual({ type: 'undefined', message: 'undefined' });
  });
});
