/**
 * Loaded into a service before its own code: its wall clock, and that of its threads, is as much ahead or behind as the file
 * says that `CLUSTER_CLOCK_FILE` names. The machine's clock is left alone, so what the process starts has the right time.
 */
import { readFileSync } from 'node:fs';

const LOOK_MS = 40;
const file = process.env['CLUSTER_CLOCK_FILE'];
if (file !== undefined) {
  const Wall = Date;
  let stepMs = 0;
  const look = (): void => {
    try {
      stepMs = Number(readFileSync(file, 'utf8')) || 0;
    } catch {
      stepMs = 0;
    }
  };
  look();
  setInterval(look, LOOK_MS).unref();
  const Stepped = function (this: unknown, ...given: readonly number[]): Date | string {
    if (new.target === undefined) return new Wall(Wall.now() + stepMs).toString();
    return Reflect.construct(Wall, given.length === 0 ? [Wall.now() + stepMs] : given, new.target) as Date;
  };
  Object.defineProperties(Stepped, Object.getOwnPropertyDescriptors(Wall));
  Object.defineProperty(Stepped, 'now', { value: () => Wall.now() + stepMs, writable: true, configurable: true });
  Object.defineProperty(Wall.prototype, 'constructor', { value: Stepped, writable: true, configurable: true });
  globalThis.Date = Stepped as unknown as DateConstructor;
}
