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
});
