import { describe, expect, it } from 'vitest';
import { parsePipeline, parseRemembered } from '../src/index.ts';

const plain = 'pipeline: {name: remembered}\nstages: {a: {run: "true"}}\n';
const template = 'pipeline: {name: remembered}\nstages: {a: {run: "echo ${{ webhook.ref }}"}}\n';

describe('remembered files', () => {
  it('say what the parser says, the first time and later', () => {
    expect(parseRemembered(plain)).toEqual(parsePipeline(plain));
    expect(parseRemembered(plain)).toBe(parseRemembered(plain));
    expect(parseRemembered(plain, { template: true })).toEqual(parsePipeline(plain, { template: true }));
  });

  it('a template that was good as such is no good file of a client', () => {
    expect(parseRemembered(template, { template: true }).ok).toBe(true);
    expect(parseRemembered(template).ok).toBe(false);
    expect(parseRemembered(template, { template: true }).ok).toBe(true);
  });

  it('a bad file is told anew each time', () => {
    expect(parseRemembered('stages: 1')).toEqual(parsePipeline('stages: 1'));
  });
});
