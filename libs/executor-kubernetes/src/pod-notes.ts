/** What is noted of a stage's Pod while it runs, so that a later process of its runner can take it up again (P36). */
import type { StageNotes } from '@penstock/executor';
import type { PodStream } from './line/frames.ts';

export interface PodEnding {
  readonly code: number;
  readonly cause: 'exit' | 'outside';
}

export interface PodPast {
  readonly name: string;
  /** Undefined: it may not have been made. */
  readonly uid: string | undefined;
  /** When the guard was told to begin, milliseconds of the boot clock; undefined: nothing of it has run. */
  readonly begunAt: number | undefined;
  /** Blocks of output that were taken. */
  readonly taken: Readonly<Record<PodStream, number>>;
  readonly done: PodEnding | null;
  /** By service: the lines of its log that were taken, as `LogResume` knows them. */
  readonly seen: ReadonlyMap<string, readonly string[]>;
}

const SEEN = 'seen ';

/** The notes, each under its name. */
export const podNotes = {
  planned: (name: string) => ({ pod: name }),
  made: (uid: string) => ({ uid }),
  begun: (bootMs: number) => ({ begun: String(bootMs) }),
  taken: (stream: PodStream, blocks: number) => ({ [stream]: String(blocks) }),
  done: ({ code, cause }: PodEnding) => ({ done: `${code} ${cause}` }),
  seen: (service: string, line: string) => ({ [`${SEEN}${service}`]: line }),
};

/** Null: there never was to be a Pod. */
export function pastOf(notes: StageNotes): PodPast | null {
  const last = (name: string): string | undefined => notes.get(name)?.at(-1);
  const name = last('pod');
  if (name === undefined) return null;
  const begun = last('begun');
  const [code, cause] = last('done')?.split(' ') ?? [];
  return {
    name,
    uid: last('uid'),
    begunAt: begun === undefined ? undefined : Number(begun),
    taken: { out: Number(last('out') ?? 0), err: Number(last('err') ?? 0) },
    done: code === undefined ? null : { code: Number(code), cause: cause === 'outside' ? 'outside' : 'exit' },
    seen: new Map(
      [...notes].flatMap(([key, lines]): [string, readonly string[]][] =>
        key.startsWith(SEEN) ? [[key.slice(SEEN.length), lines]] : [],
      ),
    ),
  };
}
