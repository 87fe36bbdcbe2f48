/** What patterns ask for and is not taken of a tree elsewhere: told in the words that are used of a folder that is read here (`walk.ts`). */
import { pathFault } from '../manifest.ts';
import type { LeftOut } from '../reading/walk.ts';

export interface NotTaken {
  /** The first of it. */
  readonly leftOut: readonly LeftOut[];
  readonly leftOutCount: number;
}

/** More than are told one by one. */
const LEFT_OUT_MAX = 20;

/** Why nothing is kept by this name, which came as UTF-8; undefined: it is a name like others. */
export function nameFault(path: string): string | undefined {
  return path.includes('\ufffd') ? 'its name is not UTF-8' : pathFault(path);
}

/** A stranger says how much there is: no more of it is held than is told. */
export class NotTakenPaths implements NotTaken {
  readonly leftOut: LeftOut[] = [];
  leftOutCount = 0;

  add(path: string, why: string): void {
    this.leftOutCount += 1;
    if (this.leftOut.length < LEFT_OUT_MAX) this.leftOut.push({ path, why });
  }

  /** As it may go to another thread. */
  told(): NotTaken {
    return { leftOut: this.leftOut, leftOutCount: this.leftOutCount };
  }
}

export function notTakenTogether(parts: readonly NotTaken[]): NotTaken {
  return {
    leftOut: parts.flatMap(({ leftOut }) => leftOut).slice(0, LEFT_OUT_MAX),
    leftOutCount: parts.reduce((sum, { leftOutCount }) => sum + leftOutCount, 0),
  };
}
