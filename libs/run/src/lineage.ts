/** What a rerun says of itself (P30): where it comes from, and which stages it takes over, as bits. */
import type { RunId, Version } from './brands.ts';

/** Where a rerun comes from; it holds what the parent was when it was read. */
export interface Lineage {
  readonly parent: RunId;
  /** The parent was read as it stood after so many of its events. */
  readonly version: Version;
  /** The first of the lineage. */
  readonly root: RunId;
  /** Who began the runs before this one, each once. */
  readonly actors: readonly string[];
  /** Those before it, its parent first, that had not ended as it was created: it cancels none of them. Absent: none. */
  readonly live?: readonly RunId[] | undefined;
  /** Somewhere in the lineage the file was replaced: it speaks for no repository any more. */
  readonly edited?: true | undefined;
  /** Which stages are taken over: a bit for each stage in the order of the definition, in base64; absent: none. */
  readonly adopts?: string | undefined;
}

/** Whether a run of this lineage leaves that one alone where it takes the place of others in their group: it was made from it. */
export function spares(lineage: Lineage | undefined, runId: RunId): boolean {
  return lineage !== undefined && (lineage.parent === runId || lineage.live?.includes(runId) === true);
}

/** As `Lineage` has them; undefined: none. */
export function bitsOf(stages: readonly number[]): string | undefined {
  const last = stages.at(-1);
  if (last === undefined) return undefined;
  const bytes = new Uint8Array((last >> 3) + 1);
  for (const index of stages) bytes[index >> 3] = (bytes[index >> 3] ?? 0) | (1 << (index & 7));
  return Buffer.from(bytes).toString('base64');
}

/** In the order of the definition. */
export function stagesIn(bits: string | undefined): number[] {
  if (bits === undefined) return [];
  return [...Buffer.from(bits, 'base64')].flatMap((byte, at) =>
    [0, 1, 2, 3, 4, 5, 6, 7].filter((bit) => (byte & (1 << bit)) !== 0).map((bit) => at * 8 + bit),
  );
}

/** How many bits are set. */
export function countIn(bits: string | undefined): number {
  return stagesIn(bits).length;
}
