/** Lets the n-th call of some objects' methods fail, before it is done or after: as where a process dies there, or an answer is lost. */
export interface Broken {
  readonly error: Error;
  readonly isBroken: boolean;
  part<T extends object>(target: T): T;
}

export function brokenAt(point: number, how: 'before' | 'after'): Broken {
  const error = new Error('broken here');
  let calls = 0;
  let isBroken = false;
  const wrap =
    (method: (...args: unknown[]) => unknown, target: object): ((...args: unknown[]) => unknown) =>
    (...args) => {
      // A process that has died calls nothing more.
      if (isBroken) throw error;
      const fails = calls === point;
      calls += 1;
      if (fails) isBroken = true;
      if (fails && how === 'before') throw error;
      const result = method.apply(target, args);
      if (!fails || !(result instanceof Promise)) return result;
      return result.then(() => {
        throw error;
      });
    };
  return {
    error,
    get isBroken() {
      return isBroken;
    },
    part: (target) =>
      new Proxy(target, {
        get(_, name) {
          const value: unknown = Reflect.get(target, name, target);
          return typeof value === 'function' ? wrap(value as (...args: unknown[]) => unknown, target) : value;
        },
      }),
  };
}
