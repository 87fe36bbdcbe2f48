/** Reads a content from who keeps it: its first part by the broker, and the rest straight where that is possible. */
import type { PartAnswer } from '../messages.ts';
import { DirectWayBroken, type DirectWay } from './direct-way.ts';

export interface ContentToRead {
  /** Asks for what stands there; `direct`: and for a way to what is behind it. */
  part(offset: number, direct: true | undefined): Promise<PartAnswer>;
  readonly from: number;
  /** Default: its end. */
  readonly to?: number | undefined;
  /** Parts under way, where they come by the broker. */
  readonly partsAtOnce: number;
  /** Undefined: there is none. */
  readonly way: Pick<DirectWay, 'isOpen' | 'read'> | undefined;
  readonly signal?: AbortSignal | undefined;
}

/**
 * Unchecked, and maybe more than was asked for; ends early where there is no more. `sizeBytes` of each: of the whole content.
 * @throws what `part` throws; ServiceError; the signal's reason
 */
export async function* readContent(
  content: ContentToRead,
): AsyncGenerator<{ readonly bytes: Uint8Array; readonly sizeBytes: number }, void> {
  const { from, way, signal } = content;
  const first = await content.part(from, way?.isOpen === true ? true : undefined);
  const { sizeBytes } = first;
  const end = Math.min(content.to ?? sizeBytes, sizeBytes);
  const bytes = bytesOf(first);
  // Who was given a piece may have given its memory back since.
  const { length } = bytes;
  yield { bytes, sizeBytes };
  let given = from + length;
  if (length === 0) return;
  if (given < end && way !== undefined && first.direct !== undefined) {
    try {
      for await (const piece of way.read(first.direct, signal)) {
        given += piece.length;
        yield { bytes: piece, sizeBytes };
      }
    } catch (error) {
      // The rest comes by the broker.
      if (!(error instanceof DirectWayBroken)) throw error;
    }
  }
  // How large parts are is the other side's: the first one says.
  const ahead: Promise<PartAnswer>[] = [];
  for (let asked = given; given < end;) {
    for (; ahead.length < content.partsAtOnce && asked < end; asked += length) {
      const later = content.part(asked, undefined);
      later.catch(() => {});
      ahead.push(later);
    }
    const next = await ahead.shift();
    if (next === undefined) return;
    const part = bytesOf(next);
    if (part.length === 0) return;
    given += part.length;
    yield { bytes: part, sizeBytes };
  }
}

function bytesOf({ data }: PartAnswer): Buffer {
  return typeof data === 'string'
    ? Buffer.from(data, 'base64')
    : Buffer.from(data.buffer, data.byteOffset, data.length);
}
