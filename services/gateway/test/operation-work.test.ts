import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { encodeAnswer } from '../src/graphql/encode-answer.ts';
import { HeavyOperations } from '../src/graphql/heavy-operations.ts';
import { LoopShare } from '../src/graphql/loop-share.ts';
import { ANSWER_BYTES_MAX, KEPT_CHARACTERS_MAX, OperationWork } from '../src/graphql/operation-work.ts';

const unpaused = { pause: () => Promise.resolve() };

describe('an answer encoded in pieces', () => {
  it('is what JSON.stringify makes of it, whatever it holds', async () => {
    const leaf = fc.oneof(fc.string(), fc.double(), fc.boolean(), fc.constant(null), fc.constant(undefined));
    const { tree } = fc.letrec<{ tree: unknown }>((tie) => ({
      tree: fc.oneof(
        { depthSize: 'small' },
        leaf,
        fc.array(tie('tree'), { maxLength: 5 }),
        fc.dictionary(fc.string(), tie('tree'), { maxKeys: 5 }),
      ),
    }));
    const large = Array.from({ length: 3_000 }, (_, index) => ({ index }));
    await fc.assert(
      fc.asyncProperty(tree, async (value) => {
        const answer = { data: { value, large, after: [value, large] } };
        expect(String(await encodeAnswer(answer, unpaused))).toBe(JSON.stringify(answer));
      }),
      { numRuns: 50 },
    );
  });

  it('may have 8 MiB to the byte, and names the innermost lists beyond', async () => {
    const around = JSON.stringify({ data: { runs: [{ text: '' }] } }).length;
    const answer = (length: number) => ({ data: { runs: [{ text: 'x'.repeat(length) }] } });
    const fits = await encodeAnswer(answer(ANSWER_BYTES_MAX - around), unpaused);
    expect(Buffer.byteLength(fits)).toBe(ANSWER_BYTES_MAX);
    await expect(encodeAnswer(answer(ANSWER_BYTES_MAX), unpaused)).rejects.toMatchObject({
      code: 'BAD_USER_INPUT',
      message: expect.stringContaining("list 'runs'") as unknown,
    });
  });
});

describe('the share of the event loop', () => {
  it('one slice a turn of the loop, and callers one after the other, however much one of them asks for', async () => {
    const share = new LoopShare();
    const order: string[] = [];
    let turns = 0;
    const slice = async (caller: string): Promise<void> => {
      await share.turn(caller);
      order.push(`${caller}${turns}`);
    };
    const work = [...Array.from({ length: 4 }, () => slice('a')), slice('b'), slice('c')];
    for (let turn = 0; turn < 6; turn++) {
      await new Promise((resolve) => setImmediate(resolve));
      turns += 1;
    }
    await Promise.all(work);
    expect(order.map((each) => each[0])).toEqual(['a', 'b', 'c', 'a', 'a', 'a']);
    expect(new Set(order.map((each) => each.slice(1))).size).toBe(6);
  });
});

describe('the work of an operation', () => {
  it('pauses after a thousand stages, whatever the clock says, and ends before 8 MiB of them are certain', async () => {
    const work = new OperationWork(new LoopShare(), 'a');
    const stages = Array.from({ length: 2_000 }, () => 1);
    expect(work.stages(stages, 10)).toBeInstanceOf(Promise);
    expect(() => work.stages(stages, ANSWER_BYTES_MAX / 2_000)).toThrow('more than 8 MiB');
  });

  it('keeps so many characters of views and no more', async () => {
    const work = new OperationWork(new LoopShare(), 'a');
    await work.keep(KEPT_CHARACTERS_MAX);
    expect(() => work.keep(1)).toThrow("with a lower 'limit'");
    await work.look();
  });
});

describe('costly operations of a caller', () => {
  it('are two at a time, others wait, and those of another caller do not', async () => {
    const heavy = new HeavyOperations();
    const { signal } = new AbortController();
    const gates = Array.from({ length: 3 }, () => Promise.withResolvers<void>());
    const begun: number[] = [];
    const running = gates.map((gate, index) =>
      heavy.run(
        'a',
        async () => {
          begun.push(index);
          await gate.promise;
        },
        signal,
      ),
    );
    await heavy.run('b', () => Promise.resolve(), signal);
    expect(begun).toEqual([0, 1]);
    gates[0]?.resolve();
    await running[0];
    await heavy.run('b', () => Promise.resolve(), signal);
    expect(begun).toEqual([0, 1, 2]);
    for (const gate of gates) gate.resolve();
    await Promise.all(running);
  });

  it('one whose client has gone before it began is not executed', async () => {
    const heavy = new HeavyOperations();
    const { signal } = new AbortController();
    const gate = Promise.withResolvers<void>();
    const running = [0, 1].map(() => heavy.run('a', () => gate.promise, signal));
    const client = new AbortController();
    const waiting = heavy.run('a', () => Promise.reject(new Error('executed')), client.signal);
    client.abort();
    await expect(waiting).rejects.toMatchObject({ name: 'AbortError' });
    gate.resolve();
    await Promise.all(running);
  });
});
