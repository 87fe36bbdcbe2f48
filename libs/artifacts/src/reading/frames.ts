/** What a collector and its parent say to each other: requests are lines of JSON, answers frames of a kind and a length. */
import type { KeptFile } from '../manifest.ts';

export interface CollectRequest {
  readonly path: string;
  readonly user?: { readonly uid: number; readonly gid: number } | undefined;
  readonly patterns: readonly string[];
  readonly filesMax: number;
  readonly bytesMax: number;
}

/** `index`: in the listing. */
export interface ReadRequest {
  readonly index: number;
  readonly sizeBytes: number;
}

export interface Listing {
  readonly files: readonly KeptFile[];
  /** The first of those that match and are not taken. */
  readonly leftOut: readonly { readonly path: string; readonly why: string }[];
  readonly leftOutCount: number;
  /** Folders that a pattern names as if they were files. */
  readonly folders: readonly string[];
}

const KINDS = ['list', 'data', 'end', 'fail'] as const;
export type FrameKind = (typeof KINDS)[number];

/** Of the bytes behind a frame's head, at most. */
export const FRAME_BYTES = 256 * 1024;
export const HEAD_BYTES = 5;

export interface FrameHead {
  readonly kind: FrameKind;
  readonly length: number;
}

export function frame(kind: FrameKind, length: number): Buffer {
  const head = Buffer.alloc(HEAD_BYTES);
  head.writeUInt8(KINDS.indexOf(kind), 0);
  head.writeUInt32BE(length, 1);
  return head;
}

/** Undefined: it is no head of a frame. */
export function readHead(head: Buffer): FrameHead | undefined {
  const kind = KINDS[head.readUInt8(0)];
  const length = head.readUInt32BE(1);
  return kind === undefined || length > FRAME_BYTES ? undefined : { kind, length };
}
