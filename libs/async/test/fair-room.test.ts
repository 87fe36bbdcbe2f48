/** P37: memory that the machines of many tenants share. */
import { describe, expect, it } from 'vitest';
import { FairRoom } from '../src/fair-room.ts';

const KIBIBYTE = 1024;
const MEBIBYTE = 1024 * KIBIBYTE;
const BOUNDS = { shared: 48 * MEBIBYTE, own: 256 * KIBIBYTE };

/** How many bytes are had in pieces of that size, until there is no more. */
function fill(room: FairRoom, who: string, bytes: number): number {
  let held = 0;
  while (room.take(who, bytes)) held += bytes;
  return held;
}

describe('room that many share', () => {
  it('is much for one alone, bounded for 200 together, and never none for the last', () => {
    const room = new FairRoom(BOUNDS);
    const first = fill(room, 'first', 64 * KIBIBYTE);
    expect(first).toBeGreaterThan(9 * MEBIBYTE);
    let all = first;
    for (let other = 0; other < 199; other += 1) all += fill(room, `${other}`, 16 * KIBIBYTE);
    expect(all).toBeLessThan(98 * MEBIBYTE);
    expect(fill(room, 'last', 64 * KIBIBYTE)).toBe(BOUNDS.own);
  });

  it('is had again by who gives it back', () => {
    const room = new FairRoom(BOUNDS);
    const before = fill(room, 'a', 64 * KIBIBYTE);
    expect(fill(room, 'b', 64 * KIBIBYTE)).toBeLessThan(before);
    for (let bytes = 0; bytes < before; bytes += 64 * KIBIBYTE) room.giveBack('a', 64 * KIBIBYTE);
    const anew = fill(room, 'a', 64 * KIBIBYTE);
    expect(anew).toBeGreaterThan(before / 2);
    expect(room.take('a', 64 * KIBIBYTE)).toBe(false);
    room.giveBack('a', 64 * KIBIBYTE);
    expect(room.take('a', 64 * KIBIBYTE)).toBe(true);
  });
});
