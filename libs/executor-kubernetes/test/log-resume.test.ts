import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { LogResume } from '../src/services/log-resume.ts';

const stamp = (ms: number): string => new Date(1_750_000_000_000 + ms).toISOString().replace('Z', '123456Z');

describe('the log of a container over several connections', () => {
  it('has every line once, wherever connections break', () => {
    const line = fc.tuple(fc.nat(40), fc.constantFrom('a', 'bb', 'a', ''));
    fc.assert(
      fc.property(fc.array(line, { maxLength: 60 }), fc.array(fc.nat(2_000), { maxLength: 4 }), (steps, breaks) => {
        let at = 0;
        const lines = steps.map(([step, text]) => [(at += step * 20), text] as const);
        const resume = new LogResume();
        const got: string[] = [];
        for (const cut of [...breaks, Infinity]) {
          // As the API does: from whole seconds on, and a connection may break inside a line.
          const since = resume.sinceTime;
          const from = since === undefined ? -Infinity : Date.parse(since);
          const text = lines
            .filter(([ms]) => 1_750_000_000_000 + ms >= from)
            .map(([ms, word]) => `${stamp(ms)} ${word}\n`)
            .join('');
          resume.begin();
          got.push(...resume.push(Buffer.from(text.slice(0, cut))).map(({ bytes }) => String(bytes)));
        }
        expect(got).toEqual(lines.map(([, text]) => `${text}\n`));
      }),
    );
  });

  it('a line without an end is cut, and costs no more', () => {
    const resume = new LogResume();
    for (let count = 0; count < 40; count += 1)
      resume.push(Buffer.from(`${count === 0 ? `${stamp(0)} ` : ''}${'x'.repeat(64_000)}`));
    const [line] = resume.push(Buffer.from('\n'));
    expect(line?.bytes.length).toBeLessThan(300_000);
  });
});
