import { describe, expect, it } from 'vitest';
import { matchesPullRequest, matchesPush, parsePipeline, type PullRequest } from '../src/index.ts';

function onOf(text: string) {
  const parsed = parsePipeline(`pipeline: {name: x}\non: ${text}\nstages: {a: {run: make}}\n`);
  if (!parsed.ok) throw new Error(parsed.diagnostics.map(({ message }) => message).join('; '));
  return parsed.definition.on;
}

const noTurn = () => Promise.resolve();

async function ruleOf(text: string, event: Partial<PullRequest> = {}): Promise<string | true> {
  const { branch = 'main', type = 'opened', paths = null } = event;
  const match = await matchesPullRequest(onOf(text), { branch, type }, () => Promise.resolve(paths), noTurn);
  return match.matched || match.rule;
}

describe('on.pull_request', () => {
  it('where `on` stands, only its events match; where it is absent or empty, all do', async () => {
    const push = { ref: 'refs/heads/main', paths: null };
    expect(await ruleOf('{}')).toBe(true);
    expect(
      await matchesPullRequest(undefined, { branch: 'x', type: 'opened' }, () => Promise.resolve(null), noTurn),
    ).toEqual({
      matched: true,
    });
    expect(await ruleOf('{push: {}}')).toBe('pull_request');
    expect(await matchesPush(onOf('{pull_request: }'), push, noTurn)).toEqual({ matched: false, rule: 'push' });
    expect([
      await ruleOf('{push: , pull_request: }'),
      (await matchesPush(onOf('{push: , pull_request: }'), push, noTurn)).matched,
    ]).toEqual([true, true]);
  });

  it('types: the first four by default, whatever else is said', async () => {
    for (const text of ['{pull_request: }', '{}', '{pull_request: {branches: main}}']) {
      for (const type of ['opened', 'synchronize', 'reopened', 'ready_for_review'] as const)
        expect(await ruleOf(text, { type })).toBe(true);
      expect(await ruleOf(text, { type: 'labeled' })).toBe('pull_request.types');
    }
    expect(await ruleOf('{pull_request: {types: labeled}}', { type: 'labeled' })).toBe(true);
    expect(await ruleOf('{pull_request: {types: [labeled, reopened]}}', { type: 'opened' })).toBe('pull_request.types');
  });

  it('branches are those that it would go into', async () => {
    const text = "{pull_request: {branches: ['release/**', '!release/old', main]}}";
    expect(await ruleOf(text, { branch: 'release/1/2' })).toBe(true);
    expect(await ruleOf(text, { branch: 'release/old' })).toBe('pull_request.branches');
  });

  it('paths: one that fits is enough, unknown ones fit always, and they are asked for only where nothing else decides', async () => {
    const text = "{pull_request: {branches: main, paths: ['src/**', '!src/gen/**']}}";
    expect(await ruleOf(text, { paths: ['docs/a', 'src/b'] })).toBe(true);
    expect(await ruleOf(text, { paths: ['docs/a', 'src/gen/b'] })).toBe('pull_request.paths');
    expect(await ruleOf(text, { paths: [] })).toBe('pull_request.paths');
    expect(await ruleOf(text, { paths: null })).toBe(true);
    const asked: string[] = [];
    const ask = (branch: string) =>
      matchesPullRequest(
        onOf(text),
        { branch, type: 'opened' },
        () => {
          asked.push(branch);
          return Promise.resolve(null);
        },
        noTurn,
      );
    await ask('other');
    await ask('main');
    expect(asked).toEqual(['main']);
  });

  it('cancel_superseded stands in the definition only where it is false', () => {
    expect(onOf('{pull_request: {cancel_superseded: false}}')).toEqual({ pullRequest: { cancelSuperseded: false } });
    expect(onOf('{pull_request: {cancel_superseded: true}}')).toEqual({ pullRequest: {} });
  });
});
