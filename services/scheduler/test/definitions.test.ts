import { describe, expect, it } from 'vitest';
import { Definitions } from '@penstock/scheduler/testing';

const fileOf = (name: string): string => `pipeline: {name: ${name}}\nstages: {a: {run: 'true'}}\n`;

describe('definitions', () => {
  it('DEFINITIONS-1: a text has one definition while a run has it, however many others were read since', () => {
    const definitions = new Definitions();
    const ofRun = definitions.find(fileOf('first')).definition;
    for (let index = 0; index < 2_100; index++) definitions.find(fileOf(`other-${index}`));
    expect(definitions.find(fileOf('first')).definition).toBe(ofRun);
  });

  it('at once there is what is known or may be read now, and nothing else', () => {
    const definitions = new Definitions();
    expect(definitions.findAtOnce(fileOf('one'), undefined, () => false)).toBeUndefined();
    const read = definitions.findAtOnce(fileOf('one'), undefined, () => true);
    expect(read?.definition.name).toBe('one');
    expect(definitions.findAtOnce(fileOf('one'), undefined, () => false)).toBe(read);
    expect(definitions.findAtOnce(fileOf('one'), [], () => false)).toBeUndefined();
  });
});
