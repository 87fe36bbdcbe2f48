import { describe, expect, it } from 'vitest';
import type { CreateRequest } from '@penstock/bus';
import { Unavailable } from '@penstock/errors';
import type { ParseResult } from '@penstock/pipeline';
import { BadPipeline, Definitions, type DefinitionSource } from '@penstock/scheduler/testing';
import { CreateIntake } from '../src/shell/create-intake.ts';
import { DefinitionReader } from '../src/shell/definition-reader.ts';

const SMALL = 'pipeline: {name: small}\nstages: {a: {run: x}}\n';

/** A file that is no small one; as long as others of its length, and unlike them. */
function large(name: string, length = 4_000): string {
  return `pipeline: {name: ${name}}\nstages: {a: {run: x}}\n#`.padEnd(length, '.');
}

function request(yaml: string, more: Partial<CreateRequest> = {}): CreateRequest {
  return { runId: yaml.slice(0, 40), tenant: 'ada', key: 'ada', yaml, origin: { kind: 'api' }, ...more };
}

/** An intake whose texts are read when the test says so; `decided` has the names of what was decided, in order. */
class Desk {
  readonly decided: string[] = [];
  readonly asked: {
    readonly text: string;
    readonly key: string;
    readonly answer: (given: ParseResult | Error) => void;
  }[] = [];
  readonly #definitions = new Definitions();
  readonly #intake: CreateIntake;

  constructor() {
    const reader = new DefinitionReader(this.#definitions, { warn: () => {} }, (text, { key }) => {
      const { promise, resolve, reject } = Promise.withResolvers<ParseResult>();
      this.asked.push({
        text,
        key,
        answer: (given) => (given instanceof Error ? reject(given) : resolve(given)),
      });
      return promise;
    });
    this.#intake = new CreateIntake(reader);
  }

  /** Ends when it is decided. */
  take(wanted: CreateRequest): Promise<void> {
    return new Promise((resolve) =>
      this.#intake.take(wanted, (source) => {
        this.decided.push(outcomeOf(source, wanted));
        resolve();
      }),
    );
  }

  /** What reading the text would give. */
  answer(index: number): void {
    const asked = this.asked[index];
    asked?.answer({
      ok: true,
      definition: { name: /name: ([^}]+)/.exec(asked.text)?.[1] ?? '', schedule: [], stages: [] },
    });
  }
}

function outcomeOf(source: DefinitionSource, { yaml, extensions, ended }: CreateRequest): string {
  if (ended !== undefined) return ended.pipelineName;
  try {
    return source.find(yaml, extensions).definition.name;
  } catch (error) {
    if (error instanceof BadPipeline || error instanceof Unavailable) return error.tag;
    throw error;
  }
}

describe('requests to create runs, whose texts are read elsewhere (CREATES)', () => {
  it('those of one key are decided in the order in which they came, whichever text is read first', async () => {
    const desk = new Desk();
    const all = [desk.take(request(large('first'))), desk.take(request(large('second'))), desk.take(request(SMALL))];
    expect(desk.decided).toEqual([]);
    desk.answer(1);
    desk.answer(0);
    await Promise.all(all);
    expect(desk.decided).toEqual(['first', 'second', 'small']);
  });

  it("those of others do not wait for them, and each text is read in its key's turn", async () => {
    const desk = new Desk();
    const slow = desk.take(request(large('slow')));
    const other = desk.take(request(large('other'), { tenant: 'bob', key: 'bob' }));
    await desk.take(request(SMALL, { tenant: 'eve', key: 'eve' }));
    desk.answer(1);
    await other;
    expect(desk.decided).toEqual(['small', 'other']);
    expect(desk.asked.map(({ key }) => key)).toEqual(['ada', 'bob']);
    desk.answer(0);
    await slow;
  });

  it('a small text, a known one and a run without any are decided at once', async () => {
    const desk = new Desk();
    const first = desk.take(request(large('known')));
    desk.answer(0);
    await first;
    void desk.take(request(large('known'), { runId: 'again' }));
    void desk.take(request(SMALL));
    void desk.take(request('', { ended: { pipelineName: 'skipped', status: 'SKIPPED' } }));
    expect(desk.decided).toEqual(['known', 'known', 'small', 'skipped']);
    expect(desk.asked).toHaveLength(1);
  });

  it('a text that is none, and one that cannot be read in time, are decided as such, and the next ones go on', async () => {
    const desk = new Desk();
    const all = ['bad', 'late', 'good'].map((name) => desk.take(request(large(name))));
    desk.asked[0]?.answer({ ok: false, diagnostics: [{ line: 1, column: 1, path: '', message: 'no pipeline' }] });
    desk.asked[1]?.answer(new Unavailable('The pipeline file could not be read in time.'));
    desk.answer(2);
    await Promise.all(all);
    expect(desk.decided).toEqual(['BadPipeline', 'Unavailable', 'good']);
  });

  it('a run that comes as ended and then, late, as it was before is read for the latter', async () => {
    const desk = new Desk();
    const before = desk.take(request(large('before')));
    const ended = desk.take(request('', { runId: 'one', ended: { pipelineName: 'ended', status: 'FAILED' } }));
    const late = desk.take(request(large('late'), { runId: 'one' }));
    desk.answer(0);
    desk.answer(1);
    await Promise.all([before, ended, late]);
    expect(desk.decided).toEqual(['before', 'ended', 'late']);
  });

  it('a request that is sent again while it waits is not read again', async () => {
    const desk = new Desk();
    const all = [desk.take(request(large('same'))), desk.take(request(large('same')))];
    expect(desk.asked).toHaveLength(1);
    desk.answer(0);
    await Promise.all(all);
    expect(desk.decided).toEqual(['same', 'same']);
  });

  it('what is over the bound of a key is refused at once, and what others send is taken', async () => {
    const desk = new Desk();
    const taken = Array.from({ length: 64 }, (_, run) => desk.take(request(large(`p${run}`))));
    await desk.take(request(large('over')));
    expect(desk.decided).toEqual(['Unavailable']);
    taken.push(desk.take(request(large('other'), { key: 'bob' })));
    for (const index of desk.asked.keys()) desk.answer(index);
    await Promise.all(taken);
    expect(desk.decided).toHaveLength(66);
    expect(desk.decided.filter((name) => name === 'Unavailable')).toHaveLength(1);
  });

  it('texts that are too long together are refused, and taken again when the first have been read', async () => {
    const desk = new Desk();
    const length = 512 * 1024;
    const taken = Array.from({ length: 16 }, (_, run) => desk.take(request(large(`p${run}`, length))));
    await desk.take(request(large('over', length)));
    expect(desk.decided).toEqual(['Unavailable']);
    for (const index of desk.asked.keys()) desk.answer(index);
    await Promise.all(taken);
    const again = desk.take(request(large('again', length)));
    desk.answer(16);
    await again;
    expect(desk.decided.at(-1)).toBe('again');
  });

  it('CREATES-3: texts of some, however long and many, leave room for those of another', async () => {
    const desk = new Desk();
    const length = 512 * 1024;
    const taken = Array.from({ length: 160 }, (_, run) =>
      desk.take(request(large(`p${run}`, length), { key: `key${run % 10}` })),
    );
    taken.push(desk.take(request(large('other'), { key: 'bob' })));
    expect(desk.asked.at(-1)?.key).toBe('bob');
    for (const index of desk.asked.keys()) desk.answer(index);
    await Promise.all(taken);
    expect(desk.decided).toContain('Unavailable');
    expect(desk.decided).toContain('other');
  });
});
