import { appendFileSync, existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Seats } from '../src/workspace/seats.ts';

let folder: string;
let file: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'penstock-seats-'));
  file = join(folder, '.seats');
});
afterEach(() => rmSync(folder, { recursive: true }));

const anySeat = () => true;
const allOf = (seats: Seats) => [...seats.runs].map((runId) => [runId, seats.of(runId)]);

describe('seats of runs', () => {
  it('are their last runs, also for the next process (SEATS-1)', () => {
    const seats = new Seats(file, anySeat);
    seats.take('seat_1', 'run-1');
    seats.take('seat_2', 'run-2');
    seats.giveUp('run-1');
    seats.take('seat_1', 'run-3');
    expect(allOf(seats)).toEqual([
      ['run-2', 'seat_2'],
      ['run-3', 'seat_1'],
    ]);
    expect(Object.fromEntries(allOf(new Seats(file, anySeat)))).toEqual({ 'run-2': 'seat_2', 'run-3': 'seat_1' });
    // And so it stands after that one has written it anew.
    expect(Object.fromEntries(allOf(new Seats(file, (seat) => seat === 'seat_1')))).toEqual({ 'run-3': 'seat_1' });
    expect(allOf(new Seats(file, () => false))).toEqual([]);
    expect(existsSync(file)).toBe(false);
  });

  it('are the later one of two that a run has taken, also for the next process (SEATS-1)', () => {
    const seats = new Seats(file, anySeat);
    seats.take('seat_2', 'run-1');
    seats.take('seat_1', 'run-2');
    for (const runId of ['run-1', 'run-2']) seats.giveUp(runId);
    seats.take('seat_1', 'run-3');
    seats.giveUp('run-3');
    seats.take('seat_2', 'run-3');
    expect(allOf(new Seats(file, anySeat))).toEqual([['run-3', 'seat_2']]);
    expect(allOf(new Seats(file, (_seat, runId) => runId !== 'run-3'))).toEqual([]);
  });

  it('of a line that was cut short nothing counts, and the next one does (SEATS-2)', () => {
    const seats = new Seats(file, anySeat);
    seats.take('seat_1', 'run-1');
    // The beginning of `run-2 seat_12 .`
    appendFileSync(file, '\nrun-2 seat_1');
    expect(allOf(new Seats(file, anySeat))).toEqual([['run-1', 'seat_1']]);
    appendFileSync(file, '\nrun-2 seat_1');
    seats.take('seat_2', 'run-3');
    expect(allOf(new Seats(file, anySeat)).toSorted()).toEqual([
      ['run-1', 'seat_1'],
      ['run-3', 'seat_2'],
    ]);
  });

  it('of a line whose beginning is lost nothing counts, and nobody is told of a run of such a name (SEATS-2)', () => {
    const seats = new Seats(file, anySeat);
    seats.take('seat_1', 'run-1');
    appendFileSync(file, `${'\0'.repeat(40)}-2 seat_1 .\n`);
    seats.take('seat_2', 'run-3');
    expect(allOf(new Seats(file, anySeat)).toSorted()).toEqual([
      ['run-1', 'seat_1'],
      ['run-3', 'seat_2'],
    ]);
  });

  it('leave a file of bounded length, however many runs there were (SEATS-2)', () => {
    const seats = new Seats(file, anySeat);
    seats.take('seat_0', 'kept');
    let longest = 0;
    for (let run = 0; run < 10_000; run += 1) {
      seats.take('seat_1', `run-${run}`);
      longest = Math.max(longest, run % 100 === 0 ? readFileSync(file).length : 0);
      seats.giveUp(`run-${run}`);
    }
    expect(longest).toBeLessThan(4_200 * 'run-9999 seat_1 .\n\n'.length);
    expect(allOf(seats)).toEqual([['kept', 'seat_0']]);
    expect(new Seats(file, anySeat).of('kept')).toBe('seat_0');
  });
});
