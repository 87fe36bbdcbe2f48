/** Rules of GitLab: when a job runs, who starts it, and whether it may fail. */
import { describe, expect, it } from 'vitest';
import { parsePipeline, type StageDefinition } from '@penstock/pipeline';
import { migrate } from '../src/index.ts';

const MAIN = `if: '$CI_COMMIT_BRANCH == "main"'`;
const TAG = `if: '$CI_COMMIT_TAG == "v1"'`;
const ON_MAIN = "run.ref == 'refs/heads/main'";
const ON_TAG = "run.ref == 'refs/tags/v1'";

interface Translated {
  readonly text: string;
  readonly told: readonly string[];
  stage(name: string): StageDefinition;
  /** As it stands in the file. */
  when(name: string): string | undefined;
}

function gitlab(text: string): Translated {
  const migration = migrate(text, { file: '.gitlab-ci.yml' });
  const parsed = parsePipeline(migration.text);
  if (!parsed.ok) throw new Error(`it would be refused:\n${migration.text}`);
  const stage = (name: string): StageDefinition => {
    const found = parsed.definition.stages.find((one) => one.name === name);
    if (found === undefined) throw new Error(`no stage '${name}' in\n${migration.text}`);
    return found;
  };
  const when = (name: string): string | undefined => {
    const [, own = ''] = migration.text.split(`\n  ${name}:\n`);
    const [, said] = /^(?: {4}.*\n)*? {4}when: (.*)\n/.exec(own) ?? [];
    return said?.startsWith('"') === true ? (JSON.parse(said) as string) : said;
  };
  return { text: migration.text, told: migration.notes.map(({ line, what }) => `${line}: ${what}`), stage, when };
}

/** A job with these keys, and one of the next stage. */
const deploy = (keys: string): Translated =>
  gitlab(`stages: [a, b]
build: {stage: .pre, script: [w]}
deploy: {stage: a, script: [x], ${keys}}
next: {stage: b, script: [y]}
`);

describe("a rule's `allow_failure`", () => {
  it.each([
    [`allow_failure: true, rules: [{${MAIN}, allow_failure: false}, {${TAG}}]`, false],
    [`allow_failure: true, rules: [{${MAIN}, allow_failure: false}]`, false],
    [`allow_failure: true, rules: [{${MAIN}}, {${TAG}}]`, true],
    [`allow_failure: false, rules: [{${MAIN}, allow_failure: true}]`, true],
    [`rules: [{${MAIN}, when: manual}]`, false],
    [`when: manual, rules: [{${MAIN}, when: on_success}]`, true],
    ['when: manual', true],
    ['when: manual, allow_failure: false', false],
  ])('stands before the one of the job: %s', (keys, mayFail) => {
    expect(deploy(keys).stage('deploy').allowFailure).toBe(mayFail);
  });

  it.each([
    `allow_failure: true, rules: [{${MAIN}, allow_failure: false}, {${TAG}}]`,
    `rules: [{${MAIN}, allow_failure: true}, {${TAG}}]`,
  ])('is told where rules differ by it: %s', (keys) => {
    expect(deploy(keys).told).toEqual(["3: that 'deploy' may fail by one rule and not by another"]);
  });

  it('says what comes of exit codes, which a rule may have overruled', () => {
    const remedies = (rules: string): unknown =>
      migrate(`a: {script: [x], allow_failure: {exit_codes: 3}${rules}}`, { file: '.gitlab-ci.yml' }).notes;
    const what = "the exit codes by which 'a' may fail";
    expect(remedies('')).toEqual([{ line: 1, what, remedy: 'it may fail by any here' }]);
    expect(remedies(`, rules: [{${MAIN}, allow_failure: false}]`)).toEqual([
      { line: 1, what, remedy: 'it may fail by none here' },
    ]);
  });

  it.each([
    'when: manual',
    `when: manual, rules: [{${MAIN}}]`,
    `allow_failure: true, rules: [{${MAIN}, when: manual}]`,
    `rules: [{${MAIN}, when: manual, allow_failure: true}]`,
  ])('lets nobody wait for who starts it: %s', (keys) => {
    const { stage, told } = deploy(keys);
    expect([stage('next').after, told]).toEqual([['build'], []]);
  });

  it.each([
    'when: manual, allow_failure: false',
    'when: manual, allow_failure: {exit_codes: 3}',
    `when: manual, rules: [{${MAIN}, allow_failure: false}]`,
    `rules: [{${MAIN}, when: manual}]`,
    `allow_failure: true, rules: [{${MAIN}, when: manual, allow_failure: false}]`,
  ])('lets what comes after it wait: %s', (keys) => {
    expect(deploy(keys).stage('next').after).toContain('deploy');
  });

  it('is told where one rule lets nobody wait and another does', () => {
    const { stage, told } = deploy(`allow_failure: true, rules: [{${MAIN}, when: manual}, {${TAG}}]`);
    expect(stage('next').after).toContain('deploy');
    expect(told).toEqual(["3: that nobody waits for 'deploy' until somebody starts it"]);
  });
});

describe('rules of which one is for failures', () => {
  it.each([
    ['always', 'always()'],
    ['on_failure', 'failure()'],
  ])('let the job run after a failure where that one fits and not where another does: %s', (when, status) => {
    const rules = `[{${TAG}, when: ${when}}, {${MAIN}}]`;
    expect(deploy(`rules: ${rules}`).when('deploy')).toBe(
      `(${ON_TAG} && ${status}) || ((${ON_MAIN} && !(${ON_TAG})) && !failure())`,
    );
  });

  it('ask nobody after a failure where another one asks', () => {
    const { told, when } = deploy(`rules: [{${TAG}, when: always}, {when: manual}]`);
    expect(when('start deploy')).toBe(`(${ON_TAG} && always()) || (!(${ON_TAG}) && !failure())`);
    expect(told).toEqual(["3: that 'deploy' is started by hand by one rule, and in another way by another"]);
  });

  it('are said once where there is but one', () => {
    expect(deploy(`rules: [{${TAG}, when: always}]`).when('deploy')).toBe(`${ON_TAG} && always()`);
  });
});

it('a rule that starts a job later starts it by itself: it is asked for by the other alone', () => {
  const { told, when } = deploy(`rules: [{${TAG}, when: manual}, {${MAIN}, when: delayed}]`);
  expect([when('start deploy'), told]).toEqual([ON_TAG, []]);
});

describe('a rule that asks for files', () => {
  const CHANGES = "3: the rule 'changes' of 'deploy'";

  it.each(['changes: [a]', 'exists: [a]'])('does not end the list: one behind it still asks somebody: %s', (files) => {
    const always = deploy(`rules: [{${files}}, {when: manual}]`);
    expect(always.stage('deploy').after).toEqual(['start deploy']);
    expect(always.when('start deploy')).toBeUndefined();
    const onMain = deploy(`rules: [{${MAIN}, ${files}}, {${MAIN}, when: manual}, {${TAG}}]`);
    expect(onMain.when('start deploy')).toBe(ON_MAIN);
  });

  it('excludes nothing where it says never, and that is told', () => {
    const { told, when } = deploy(`rules: [{changes: [a], when: never}, {${MAIN}}]`);
    expect([when('deploy'), told]).toEqual([ON_MAIN, [CHANGES]]);
    const { notes } = migrate('a: {script: [x], rules: [{changes: [a], when: never}, {when: on_success}]}', {
      file: '.gitlab-ci.yml',
    });
    expect(notes.map(({ remedy }) => remedy)).toEqual([expect.stringContaining('it excludes nothing here')]);
  });

  it('lets one behind it that says never exclude those behind that', () => {
    const { told, when } = deploy(`rules: [{${TAG}, changes: [a]}, {${MAIN}, when: never}, {when: on_success}]`);
    expect([when('deploy'), told]).toEqual([`${ON_TAG} || !(${ON_MAIN})`, [CHANGES]]);
  });
});

it('`except` excludes a job by any of its keys, and by none that is not known here', () => {
  const job = (except: string): string | undefined => deploy(`except: {${except}}`).when('deploy');
  expect(job(`refs: [schedules], variables: ['$CI_COMMIT_BRANCH == "main"']`)).toBe(
    `!(run.trigger == 'schedule') && !(${ON_MAIN})`,
  );
  expect(job('changes: [a]')).toBeUndefined();
});

describe('the gate of a job', () => {
  it('has a name of its own where a job is called like it, before or behind', () => {
    const job = (name: string, more = ''): string => `${name}: {script: [x]${more}}\n`;
    const manual = job('deploy', ', when: manual');
    for (const text of [job('start deploy') + manual, manual + job('start deploy')]) {
      const { stage } = gitlab(text);
      expect(stage('start deploy').approval).toBeUndefined();
      expect(stage('start deploy 2').approval).toBeDefined();
      expect(stage('deploy').after).toEqual(['start deploy 2']);
    }
  });

  it('is that of its own job where two names are cut to one', () => {
    const long = 'x'.repeat(100);
    const { stage } = gitlab(`${long}a: {script: [x]}\n${long}b: {script: [y], when: manual}\n`);
    expect(stage(long).after).toEqual([]);
    expect(stage(`${long} 2`).after).toEqual([`start ${long} 2`.slice(0, 100).trim()]);
  });

  it('comes after what finds out whether it asks, also where the rules of its job cannot be said', () => {
    const { stage, text, told } = gitlab(
      "deploy: {script: [x], rules: [{if: $CI_COMMIT_TAG, when: manual}, {if: '$A =~ $B'}]}\n",
    );
    expect(told).toEqual(["1: the rules of 'deploy': $B"]);
    expect(stage('start deploy').after).toEqual(['conditions']);
    expect(stage('start deploy').when).toBeDefined();
    expect(stage('deploy').after).toEqual(['conditions', 'start deploy']);
    expect(text).toContain('not translated: a job with the rules $B');
  });
});

describe('what finds out conditions', () => {
  it('has a name of its own where a job of GitLab is called like it', () => {
    const { stage, when } = gitlab(
      'stages: [a, b]\nconditions: {stage: a, script: [x], when: manual, allow_failure: false}\nb: {stage: b, script: [y], rules: [{if: $CI_COMMIT_TAG}]}\n',
    );
    expect(stage('conditions').after).toEqual(['start conditions']);
    expect(stage('b').after).toEqual(['conditions_2', 'conditions']);
    expect(when('b')).toBe("stages.conditions_2.outputs.c1 == 'yes'");
  });

  it.each([
    [
      'github',
      'on: push\njobs:\n  conditions: {steps: [{run: x}]}\n  b: {needs: conditions, if: "startsWith(github.ref, \'refs/tags/v\')", steps: [{run: y}]}\n',
    ],
    [
      'woodpecker',
      'steps:\n  - {name: conditions, image: a, commands: [x]}\n  - {name: b, image: a, commands: [y], when: {event: tag}}\n',
    ],
  ] as const)('and where one of %s is', (format, text) => {
    const parsed = parsePipeline(migrate(text, { file: 'x.yml', format }).text);
    expect(parsed.ok && parsed.definition.stages.map(({ name, after }) => [name, after])).toEqual([
      ['conditions_2', []],
      ['conditions', []],
      ['b', ['conditions_2', 'conditions']],
    ]);
  });
});
