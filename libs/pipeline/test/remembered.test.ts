import { describe, expect, it, vi } from 'vitest';
import { adoptForeign, parsePipeline, parseRemembered } from '../src/index.ts';

const plain = 'pipeline: {name: remembered}\nstages: {a: {run: "true"}}\n';
const template = 'pipeline: {name: remembered}\nstages: {a: {run: "echo ${{ webhook.ref }}"}}\n';

describe('remembered files', () => {
  it('say what the parser says, the first time and later', () => {
    expect(parseRemembered(plain)).toEqual(parsePipeline(plain));
    expect(parseRemembered(plain)).toBe(parseRemembered(plain));
    expect(parseRemembered(plain, { template: true })).toEqual(parsePipeline(plain, { template: true }));
  });

  it('a file that uses no extensions is read once, whether an empty list of them is given or none', () => {
    const text = 'pipeline: {name: none-used}\nstages: {a: {run: "true"}}\n';
    const first = parseRemembered(text, { extensions: [] });
    expect(first).toEqual(parsePipeline(text));
    expect(parseRemembered(text, { extensions: [] })).toBe(first);
    expect(parseRemembered(text)).toBe(first);
  });

  it('a template that was good as such is no good file of a client', () => {
    expect(parseRemembered(template, { template: true }).ok).toBe(true);
    expect(parseRemembered(template).ok).toBe(false);
    expect(parseRemembered(template, { template: true }).ok).toBe(true);
  });

  it('a bad file is told anew each time', () => {
    expect(parseRemembered('stages: 1')).toEqual(parsePipeline('stages: 1'));
  });

  it('that come from elsewhere have their records looked at once, however many stages share them', () => {
    const [stages, commands] = [100, 50];
    const list = (count: number): string => `[${Array.from({ length: count }, (_, index) => index).join(', ')}]`;
    const text = `pipeline: {name: shared}\nstages: {a: {run: ${list(commands)}, matrix: {n: ${list(stages)}}}}\n`;
    const foreign = structuredClone(parsePipeline(text));
    const looks = vi.spyOn(Object, 'setPrototypeOf');
    adoptForeign(text, {}, foreign);
    const count = looks.mock.calls.length;
    looks.mockRestore();
    expect(count).toBeLessThan(3 * stages + commands);
    expect(foreign).toEqual(parsePipeline(text));
  });
});
