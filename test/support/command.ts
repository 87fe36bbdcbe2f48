/** What a user's `penstock` runs: the files that its commands were put together in, where they are current (bootstrap/command.js), else the sources. */
import { fileURLToPath } from 'node:url';

const CHECKOUT = fileURLToPath(new URL('../../', import.meta.url));
/** The bootstrap is plain JavaScript. */
const { keptForNow, madeCommand } = (await import(`${CHECKOUT}bootstrap/command.js`)) as {
  madeCommand(root: string, name: string): string | undefined;
  keptForNow(file: string | undefined): string | undefined;
};

/** Looked up at each start: a source may have changed since the last. */
export function fileOfCommand(name: 'serve' | 'service' | 'runner'): string {
  // What is profiled is to be named by its source.
  const isProfiled = process.env['PENSTOCK_PROFILES'] !== undefined;
  return (
    (isProfiled ? undefined : keptForNow(madeCommand(CHECKOUT.slice(0, -1), name))) ?? `${CHECKOUT}cli/src/main.ts`
  );
}
