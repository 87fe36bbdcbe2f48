/** Contents in parts, to readers that give each part's memory back before they ask for the next one. */
import { expect, it } from 'vitest';
import { letGo } from '../src/let-go.ts';
import { readContent } from '../src/direct/read-content.ts';

const PART = 1_000;

it.each([1, 999, 1_000, 1_001, 3_500, 10_000])(
  'all %i bytes come, whatever becomes of those that have',
  async (size) => {
    const whole = Uint8Array.from({ length: size }, (_, at) => at % 251);
    const part = async (offset: number) => ({ data: whole.slice(offset, offset + PART), sizeBytes: size });
    const come: number[] = [];
    for await (const { bytes } of readContent({ part, from: 0, partsAtOnce: 2, way: undefined, signal: undefined })) {
      come.push(...bytes);
      letGo(bytes);
    }
    expect(Buffer.from(come).equals(whole)).toBe(true);
  },
);
