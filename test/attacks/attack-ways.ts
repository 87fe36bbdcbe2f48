/**
 * The programs of `programs.ts`, run by a real server as the stages of one key, beside a running stage of another. Where they
 * cannot run (no root to start servers of both kinds, no C compiler, no bubblewrap, no engine of containers) that is reported.
 */
import { appendFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { attack, whyNoAttacks } from './attack.ts';
import { PROGRAMS, type Way } from './programs.ts';
import { startWorld, whyNot } from './worlds.ts';

const notRun = process.env['PENSTOCK_NOT_RUN_FILE'];
const report = (what: string, reason: string): void => {
  if (notRun !== undefined) appendFileSync(notRun, `${what}: ${reason.replaceAll('\n', ' ')}\n`);
};

/** Those of the ways in which stages can run here. */
export async function describeAttacks(asked: readonly Way[]): Promise<void> {
  const why = whyNoAttacks();
  if (why !== undefined) report('attacks of stages', why);
  const reasons = why === undefined ? await Promise.all(asked.map((way) => whyNot(way))) : [];
  const ways = asked.filter((way, at) => {
    const reason = reasons[at];
    if (typeof reason === 'string') report(`attacks of stages (${way})`, reason);
    return reason === null;
  });

  describe.runIf(why === undefined)('programs that a stage may try', () => {
    it('are at least sixty, each by a name of its own', () => {
      expect(PROGRAMS.length).toBeGreaterThanOrEqual(60);
      expect(new Set(PROGRAMS.map(({ name }) => name)).size).toBe(PROGRAMS.length);
    });

    it.each(ways)(
      '%s: they find nothing but what is told to be not held',
      async (way) => {
        const known = PROGRAMS.filter(({ notHeld }) => notHeld?.includes(way)).map(({ name }) => name);
        const found = await attack(await startWorld(way));
        expect(found.filter((name) => !known.includes(name))).toEqual([]);
      },
      400_000,
    );

    it.runIf(ways.includes('container, another user'))(
      'container, another user, with a number of its own inside: they find nothing more',
      async () => {
        const world = await startWorld('container, another user');
        const known = PROGRAMS.filter(({ notHeld }) => notHeld?.includes('container, another user'));
        const found = await attack({ ...world, image: `{name: ${world.image}, user: '1000'}` });
        expect(found.filter((name) => !known.some((each) => each.name === name))).toEqual([]);
      },
      400_000,
    );
  });
}
