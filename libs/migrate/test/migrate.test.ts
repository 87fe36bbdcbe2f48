import { spawnSync } from 'node:child_process';
import { describe, expect, it } from 'vitest';
import { parsePipeline } from '@penstock/pipeline';
import { FORMATS, migrate, UnreadableSource, type Format } from '../src/index.ts';

const github = (text: string): ReturnType<typeof migrate> => migrate(text, { file: 'ci.yml', format: 'github' });
const gitlab = (text: string): ReturnType<typeof migrate> => migrate(text, { file: '.gitlab-ci.yml' });
const woodpecker = (text: string): ReturnType<typeof migrate> => migrate(text, { file: '.woodpecker.yml' });
const told = ({ notes }: ReturnType<typeof migrate>): string[] => notes.map(({ line, what }) => `${line}: ${what}`);

/** What the script of the one stage does, run as a runner runs it. */
function ranBy(shell: string, text: string): { readonly status: number | null; readonly stdout: string } {
  const parsed = parsePipeline(text);
  const commands = parsed.ok ? (parsed.definition.stages[0]?.commands ?? []) : [];
  const script = commands.map((command) => command.script).join('\n');
  const { status, stdout } = spawnSync(shell, ['-ec', script], { encoding: 'utf8' });
  return { status, stdout };
}

const WITH_UNKNOWN_KEYS: Readonly<Record<Format, string>> = {
  github: `on: {push: {unknown-a: 1}}
unknown-b: 2
jobs:
  a:
    unknown-c: 3
    runs-on: ubuntu-latest
    services: {db: {image: postgres, unknown-d: 4}}
    steps:
      - {run: make, unknown-e: 5}
      - {uses: actions/setup-node@v4, with: {unknown-f: 6}}
`,
  gitlab: `default: {unknown-a: 1}
a:
  unknown-b: 2
  script: [make]
  artifacts: {paths: [x], unknown-c: 3, reports: {unknown-d: 4}}
  rules: [{if: $CI_COMMIT_TAG, unknown-e: 5}]
  image: {name: alpine, unknown-f: 6}
`,
  woodpecker: `unknown-a: 1
when: {event: push, unknown-b: 2}
steps:
  - {name: a, image: alpine, commands: [make], unknown-c: 3, when: {event: push, unknown-d: 4}}
services:
  - {name: db, image: postgres, unknown-e: 5}
unknown-f: 6
`,
};

describe('a file of another engine', () => {
  it.each(FORMATS)('loses nothing in silence: every key of %s that is not known is told', (format) => {
    const { notes } = migrate(WITH_UNKNOWN_KEYS[format], { file: 'x.yml', format });
    const words = notes.map(({ what }) => what).join('\n');
    for (const letter of 'abcdef') expect(words).toContain(`unknown-${letter}`);
  });

  it('is refused with its place where it is no YAML, and by its reason where it is none that can be translated', () => {
    expect(() => github('a: [')).toThrow(/^line 1: /);
    expect(() => migrate('a: b', { file: 'x.yml' })).toThrow('looks like no workflow');
    expect(() => migrate('- a', { file: 'x.yml' })).toThrow('no map of keys');
    expect(() => github('on: push\njobs: {}\n')).toThrow('it has no jobs');
    expect(() => github('on: push\n__proto__: {x: 1}\njobs: {}\n')).toThrow('line 2: a key called __proto__');
  });

  it('is refused where it would become too much: of text, of levels, of aliases, of references, of stages', () => {
    const bomb = `a: &a [x, x, x, x, x, x, x, x, x, x]\n${Array.from('bcdefgh', (letter, index) => `${letter}: &${letter} [${Array(10).fill(`*${'abcdefg'[index]}`).join(', ')}]\n`).join('')}`;
    const references = `${Array.from(
      { length: 9 },
      (_, index) =>
        `.s${index}:\n  script: [${Array(9)
          .fill(`!reference [.s${index + 1}, script]`)
          .join(', ')}]\n`,
    ).join('')}.s9: {script: [echo]}\njob: {script: [!reference [.s0, script]]}\n`;
    const many = `${Array.from({ length: 2_500 }, (_, index) => `j${index}: {script: [echo]}\n`).join('')}`;
    for (const text of [
      `a: ${'x'.repeat(1024 * 1024)}`,
      '['.repeat(5_000),
      '['.repeat(200_000),
      bomb,
      references,
      many,
    ])
      expect(() => gitlab(text)).toThrow(UnreadableSource);
  });

  it('is taken where its jobs need each other in a circle, which is cut and told: what is cut off runs no sooner', () => {
    const migration = github(
      'on: push\njobs:\n  a: {needs: b, steps: [{run: echo x}]}\n  b: {needs: a, steps: [{run: echo y}]}\n',
    );
    expect(migration.problems).toEqual([]);
    expect(told(migration).join()).toContain('dependency cycle');
    expect(migration.text.match(/not translated: what comes before/g)).toHaveLength(1);
  });
});

describe('a word that the other engine does not know', () => {
  const ONE: Readonly<Record<Format, readonly (readonly [text: string, told: string])[]>> = {
    github: [
      ['on: push\njobs: {a: {continue-on-error: treu, steps: [{run: echo}]}}', "'continue-on-error: treu' of 'a'"],
      [
        'on: push\njobs: {a: {steps: [{run: echo, continue-on-error: "${{ x }}"}]}}',
        "'continue-on-error: ${{ x }}' of",
      ],
      [
        'on: push\njobs: {a: {strategy: {fail-fast: flase, matrix: {v: [1]}}, steps: [{run: echo}]}}',
        'fail-fast: flase',
      ],
      [
        'on: push\njobs: {a: {strategy: {max-parallel: two, matrix: {v: [1]}}, steps: [{run: echo}]}}',
        'max-parallel: two',
      ],
      [
        'on: {workflow_dispatch: {inputs: {i: {type: bolean}}}}\njobs: {a: {steps: [{run: echo}]}}',
        "'type: bolean' of the input 'i'",
      ],
      ['on: {workflow_dispatch: {inputs: {i: {required: yse}}}}\njobs: {a: {steps: [{run: echo}]}}', 'required: yse'],
      ['on: {pull_request: {types: [opend]}}\njobs: {a: {steps: [{run: echo}]}}', 'opend'],
      ['on: push\njobs: {a: {steps: [{uses: actions/setup-node@v4, with: {cache: nmp}}]}}', 'cache: nmp'],
      [
        'on: push\njobs: {a: {steps: [{uses: actions/upload-artifact@v4, with: {path: x, if-no-files-found: fail}}]}}',
        'if-no-files-found: fail',
      ],
      [
        'on: push\njobs: {a: {steps: [{uses: actions/upload-artifact@v4, with: {path: x, retention-days: ten}}]}}',
        'retention-days: ten',
      ],
      ["on: push\njobs: {a: {if: github.ref_type == 'brnach', steps: [{run: echo}]}}", "the condition of 'a'"],
    ],
    gitlab: [
      ['a: {script: [echo], when: maual}', "the rules of 'a': when: maual"],
      ['a: {script: [echo], rules: [{when: maual}]}', "the rules of 'a': when: maual"],
      ['a: {script: [echo], allow_failure: treu}', "'allow_failure: treu' of 'a'"],
      ['a: {script: [echo], rules: [{if: $CI_COMMIT_TAG, allow_failure: treu}]}', "'allow_failure: treu' of 'a'"],
      ['a: {script: [echo], retry: {max: 1, when: script_failrue}}', 'script_failrue'],
      ['a: {script: [echo], artifacts: {paths: [x], when: on_sucess}}', "'when: on_sucess' of the artifacts of 'a'"],
      ['a: {script: [echo], parallel: many}', "'parallel: many' of 'a'"],
      ['a: {script: [echo], cache: {paths: [x], policy: pul}}', "'policy: pul' of a cache of 'a'"],
      ['a: {script: [echo], cache: {paths: [x], when: allways}}', "'when: allways' of a cache of 'a'"],
      ['a: {script: [echo], variables: {X: {value: y, expand: flase}}}', "'expand: flase' of the variable X"],
      [
        'a: {script: [echo]}\nb: {script: [echo], needs: [{job: a, artifacts: flase}]}',
        "'artifacts: flase' of a need of 'b'",
      ],
      [
        'a: {script: [echo]}\nb: {script: [echo], needs: [{job: a, optional: treu}]}',
        "'optional: treu' of a need of 'b'",
      ],
    ],
    woodpecker: [
      ['steps: [{name: a, image: alpine, commands: [echo], failure: ingore}]', "'failure: ingore' of the step 'a'"],
      ['steps: [{name: a, image: alpine, commands: [echo], detach: treu}]', "'detach: treu' of the step 'a'"],
      [
        'steps: [{name: a, image: alpine, commands: [echo], when: {status: [failrue]}}]',
        "the condition of 'a': status: failrue",
      ],
      ['steps: [{name: a, image: alpine, commands: [echo], when: {event: psuh}}]', "the event 'psuh'"],
    ],
  };
  const all = FORMATS.flatMap((format) => ONE[format].map(([text, what]) => ({ format, text, what })));

  it.each(all)('is told, and never taken for what is meant where nothing is said: $what', ({ format, text, what }) => {
    const { notes, problems } = migrate(text, { file: 'x.yml', format });
    expect(problems).toEqual([]);
    expect(notes.map((note) => note.what).join('\n')).toContain(what);
  });

  it('lets no job run whose condition it is', () => {
    for (const rest of ['when: maual', 'rules: [{when: maual}]'])
      expect(ranBy('sh', gitlab(`a: {script: [echo ran], ${rest}}`).text)).toEqual({ status: 1, stdout: '' });
    const { text } = woodpecker('steps: [{name: a, commands: [echo ran], when: {status: [failrue]}}]');
    expect(ranBy('sh', text)).toEqual({ status: 1, stdout: '' });
  });
});

describe('a workflow of GitHub Actions', () => {
  it('gives values to scripts by variables, never as text of the script', () => {
    const { text, problems } = github(`on: push
jobs:
  a:
    strategy: {matrix: {v: ['1', '2']}}
    steps:
      - run: echo '\${{ matrix.v }}' "\${{ github.sha }}" \${{ secrets.key }}
`);
    expect(problems).toEqual([]);
    expect(text).toContain(`echo ''"\${MATRIX_V}"'' "\${SERVICE_COMMIT:-}" \${KEY}`);
    expect(text).toContain('MATRIX_V: ${{ matrix.v }}');
    expect(text).toContain('- KEY');
  });

  it('keeps what a variable says as it is: there nothing in it is read by a shell', () => {
    const { text } = github(`on: push
jobs:
  a:
    steps:
      - run: printenv X
        env: {X: 'say "$HOME" \`id\` \\n \${{ github.sha }}'}
`);
    expect(text).toContain(String.raw`export X="say \"\$HOME\" \`id\` \\n ${'$'}{SERVICE_COMMIT:-}"`);
  });

  it('asks in a script what a step asks of a matrix, of variables and of steps before it', () => {
    const { notes, text } = github(`on: push
env: {MODE: fast}
jobs:
  a:
    strategy: {matrix: {os: [one, two]}}
    steps:
      - {id: look, run: 'echo "found=yes" >> "$GITHUB_OUTPUT"'}
      - {if: matrix.os == 'one' && env.MODE == 'fast', run: make a}
      - {if: steps.look.outputs.found == 'yes', run: make b}
      - {run: "make \${{ matrix.os == 'one' && 'c' || 'd' }}"}
`);
    expect(notes).toEqual([]);
    expect(text).toContain(`if { [ "\${MATRIX_OS}" = 'one' ]; } && { [ "\${MODE:-}" = 'fast' ]; }; then`);
    expect(text).toContain(`if [ "\${STEPS_LOOK_FOUND}" = 'yes' ]; then`);
    expect(text).toContain(`make $(if [ "\${MATRIX_OS}" = 'one' ]; then echo "c"; else echo "d"; fi)`);
  });

  it('takes maps of a matrix apart', () => {
    const { notes, text } = github(`on: push
jobs:
  a:
    strategy: {matrix: {target: [{name: x, flags: -O1}, {name: y, flags: -O2}]}}
    steps: [{run: "make \${{ matrix.target.name }} \${{ matrix.target.flags }}"}]
`);
    expect(notes).toEqual([]);
    const parsed = parsePipeline(text);
    expect(parsed.ok && parsed.definition.stages.map(({ name }) => name)).toEqual([
      'a (target_name=x, target_flags=-O1)',
      'a (target_name=y, target_flags=-O2)',
    ]);
  });

  it('fails a stage whose step it cannot translate, and says which', () => {
    const migration = github('on: push\njobs:\n  a:\n    steps:\n      - uses: acme/thing@v1\n        with: {x: 1}\n');
    expect(told(migration)).toEqual(['5: the action acme/thing@v1']);
    expect(migration.text).toContain("echo 'not translated: acme/thing@v1' >&2; exit 1");
  });

  it.each(['sh', 'bash'])(
    'ends a step that may fail at its first command that does, and goes on behind it, in %s',
    (shell) => {
      const { text } = github(`on: push
jobs:
  a:
    steps:
      - {run: 'cd nowhere; echo elsewhere', continue-on-error: true, working-directory: .}
      - {run: "false\\necho elsewhere", continue-on-error: true}
      - run: echo next
      - {run: "false\\necho elsewhere"}
`);
      expect(ranBy(shell, text)).toEqual({ status: 1, stdout: 'next\n' });
    },
  );

  it('runs no step that is for failures, and none whose condition it cannot say', () => {
    const of = (condition: string): string =>
      github(
        `on: push\njobs:\n  a:\n    steps:\n      - {run: echo ran, if: "${condition}"}\n      - {run: echo next}\n`,
      ).text;
    for (const condition of ['failure()', 'failure() || cancelled()', "failure() && steps.f.outcome == 'failure'"])
      expect(ranBy('sh', of(condition))).toEqual({ status: 0, stdout: 'next\n' });
    for (const condition of ['always()', '!cancelled()', 'success() || failure()'])
      expect(ranBy('sh', of(condition))).toEqual({ status: 0, stdout: 'ran\nnext\n' });
    expect(ranBy('sh', of("steps.f.outcome == 'failure'"))).toEqual({ status: 1, stdout: '' });
    expect(told(github('on: push\njobs:\n  a:\n    steps:\n      - {run: x, if: failure()}\n'))).toEqual([
      "5: the condition of the step 'run': failure()",
    ]);
  });

  it('runs no job whose condition it cannot say', () => {
    const made = github(
      "on: push\njobs:\n  a:\n    if: contains(fromJSON('[1]'), github.x)\n    steps: [{run: echo ran}]\n",
    );
    expect(ranBy('sh', made.text)).toEqual({ status: 1, stdout: '' });
    expect(told(made)).toEqual(["4: the condition of 'a': contains(fromJSON('[1]'), github.x)"]);
  });

  it.each([
    ['success()', undefined],
    ["github.actor == 'x()'", "run.actor == 'x()'"],
    ["success() && github.ref == 'refs/heads/main'", "run.ref == 'refs/heads/main'"],
    ['success() || failure()', 'success() || failure()'],
    ['always() && success()', 'always() && success()'],
    // There a side that asks for no status holds after a failure, too, once another side asks for one.
    ["success() || github.actor == 'ada'", "always() && (success() || run.actor == 'ada')"],
    ['!success()', 'always() && !(success())'],
  ])('lets a job begin after a failure exactly where its condition does: %s', (condition, when) => {
    const { notes, text } = github(
      `on: push\njobs:\n  before: {steps: [{run: x}]}\n  a:\n    needs: before\n    if: "${condition}"\n    steps: [{run: y}]\n`,
    );
    expect(notes).toEqual([]);
    expect(/^    when: (.*)$/m.exec(text)?.[1]?.replace(/^(["'])(.*)\1$/, '$2')).toBe(when);
  });

  it('keeps jobs apart whose ids are alike in all that a name may have: one that needs the second comes after it', () => {
    const id = 'a'.repeat(100);
    const { text } = github(
      `on: push\njobs:\n  ${id}x: {steps: [{run: one}]}\n  ${id}y: {steps: [{run: two}]}\n  z: {needs: ${id}y, steps: [{run: three}]}\n`,
    );
    expect(text).toContain(`    after: ${id} 2\n`);
  });

  it('finds out by a stage of its own what only a shell can say, so that the others are skipped', () => {
    const { text } = github(
      "on: push\njobs:\n  a:\n    if: startsWith(github.ref, 'refs/tags/v')\n    steps: [{run: make}]\n",
    );
    const parsed = parsePipeline(text);
    expect(parsed.ok && parsed.definition.stages.map(({ name, after }) => [name, after])).toEqual([
      ['conditions', []],
      ['a', ['conditions']],
    ]);
    expect(text).toContain("when: stages.conditions.outputs.c1 == 'yes'");
  });
});

describe('a file of GitLab', () => {
  it.each(['sh', 'bash'])(
    'ends an after_script at its first command that fails, which fails nobody, in %s',
    (shell) => {
      const after = "after_script: [\"echo 'after'\", 'false', echo elsewhere]";
      expect(ranBy(shell, gitlab(`a: {script: [echo one], ${after}}`).text)).toEqual({
        status: 0,
        stdout: 'one\nafter\n',
      });
      expect(ranBy(shell, gitlab(`a: {script: [exit 3], ${after}}`).text)).toEqual({ status: 3, stdout: 'after\n' });
    },
  );

  it('runs no job whose rules it cannot say', () => {
    const { text } = gitlab("a: {script: [echo ran], rules: [{if: '$A =~ $B'}]}");
    expect(ranBy('sh', text)).toEqual({ status: 1, stdout: '' });
  });

  it('begins an after_script in the folder of the project', () => {
    const { text } = gitlab('a: {script: [cd /], after_script: ["[ $PWD = / ] || echo back"]}');
    expect(ranBy('sh', text)).toEqual({ status: 0, stdout: 'back\n' });
  });

  it('merges what jobs extend, key by key', () => {
    const { text } = gitlab(`.a: {image: alpine, variables: {A: '1', B: '1'}}
.b: {extends: .a, variables: {B: '2'}}
job: {extends: .b, script: [make]}
`);
    const parsed = parsePipeline(text);
    expect(parsed.ok && parsed.definition.stages[0]?.env).toEqual({ A: ['1'], B: ['2'] });
    expect(text).toContain('image: alpine');
  });

  it('reads no variables in a value that says so, and tells of a cache what a stage does not do', () => {
    const variables = "{A: {value: 'a $HOME', expand: false}, B: {value: '$A', expand: 'true'}}";
    const cache =
      "{key: $CI_COMMIT_REF_SLUG, paths: [x], policy: pull, when: always, untracked: true, fallback_keys: ['old-$X']}";
    const { notes, text } = gitlab(
      `variables: ${variables}\na: {script: ['echo "$B"'], variables: ${variables}, cache: ${cache}}\n`,
    );
    expect(text.match(/A: a \$HOME/gu)).toHaveLength(2);
    expect(text).not.toContain('export A');
    expect(text).toContain('export B="$A"');
    expect(text).toMatch(/restore: (?:\[|\n *- )?old-x/u);
    expect(notes.map(({ what }) => what)).toEqual([
      "'policy: pull' of a cache of 'a', which is looked for and saved here",
      "'when: always' of a cache of 'a'",
      "'untracked' of a cache of 'a'",
    ]);
  });

  it.each([
    ['public: false', true],
    ['access: none', true],
    ['access: maintainer', true],
    ['public: true', false],
    ['access: all', false],
  ])('tells who may read artifacts with %s: %s', (line, isTold) => {
    const { notes } = gitlab(`a: {script: [x], artifacts: {paths: [x], ${line}}}\n`);
    expect(notes.map(({ what }) => what)).toEqual(isTold ? ["who may read the artifacts of 'a'"] : []);
  });

  it('lets a job have a variable of its own in the place of one that is made of others', () => {
    const { text } = gitlab("variables: {X: '$HOME'}\na: {script: ['echo $X'], variables: {X: plain}}\n");
    expect(text).toContain('X: plain');
    expect(text).not.toContain('export X');
  });

  it('puts a gate before a job that somebody starts, and lets nobody wait for it who did not', () => {
    const { text } = gitlab(
      'stages: [a, b]\ndeploy: {stage: a, script: [x], when: manual}\nnext: {stage: b, script: [y]}\n',
    );
    const parsed = parsePipeline(text);
    expect(parsed.ok && parsed.definition.stages.map(({ name, after }) => [name, after])).toEqual([
      ['start deploy', []],
      ['deploy', ['start deploy']],
      ['next', []],
    ]);
  });

  it('lets what comes after a job that does not run go on, unless one before has failed', () => {
    const { text } = gitlab(
      'stages: [a, b]\none: {stage: a, script: [x], rules: [{if: \'$CI_COMMIT_BRANCH == "main"\'}]}\ntwo: {stage: b, script: [y]}\n',
    );
    expect(text).toContain('when: "!failure()"');
  });

  it('asks where a rule says so, and goes on by itself where another does', () => {
    const rules = `[{if: '$CI_COMMIT_TAG', when: never}, {if: '$CI_COMMIT_BRANCH == "main"', when: manual}, {when: on_success}]`;
    const { notes, text } = gitlab(`deploy: {script: [x], rules: ${rules}}\n`);
    const parsed = parsePipeline(text);
    const stages = parsed.ok ? parsed.definition.stages : [];
    expect(stages.map(({ name, after }) => [name, after])).toEqual([
      ['conditions', []],
      ['start deploy', ['conditions']],
      ['deploy', ['conditions', 'start deploy']],
    ]);
    expect(text).toMatch(
      /start deploy:\n {4}after: conditions\n {4}when: run\.ref == 'refs\/heads\/main' && !\(stages/,
    );
    expect(text).toMatch(/\n {2}deploy:\n(?: {4,}.*\n)*? {4}when: "?!failure\(\) && \(/);
    expect(notes).toEqual([]);
  });

  it('always asks where one rule asks and another runs the job after a failure, and says so', () => {
    const migrated = gitlab(
      "deploy: {script: [x], rules: [{if: '$CI_COMMIT_TAG', when: manual}, {when: on_failure}]}\n",
    );
    expect(told(migrated)).toEqual(["1: that 'deploy' is started by hand by one rule, and in another way by another"]);
    expect(migrated.text).toMatch(/\n {2}deploy:\n {4}after: start deploy\n {4}workspace: fresh\n {4}run: x\n/);
  });

  it('gives a rule that says nothing itself the `when` of its job', () => {
    const { text } = gitlab('a: {script: [x], when: manual, rules: [{if: \'$CI_COMMIT_BRANCH == "main"\'}]}\n');
    expect(text).toContain('start a:');
  });

  it.each([
    ['0', { max: 0 }, []],
    ['2', { max: 2, on: ['failure', 'timeout', 'lost'] }, []],
    ['{max: 2}', { max: 2, on: ['failure', 'timeout', 'lost'] }, []],
    ['{max: 2, when: [script_failure, runner_system_failure]}', { max: 2, on: ['failure', 'lost'] }, []],
    ['{max: 2, when: stuck_or_timeout_failure}', { max: 2, on: ['timeout', 'lost'] }, []],
    ['{max: 2, when: always}', { max: 2, on: ['failure', 'timeout', 'lost'] }, []],
    [
      '{max: 2, when: [api_failure, archived_failure]}',
      { max: 2, on: ['lost'] },
      ["1: that 'a' is tried again after archived_failure"],
    ],
    ['{max: 2, when: archived_failure}', { max: 0 }, ["1: that 'a' is tried again after archived_failure"]],
    ['{max: 2, exit_codes: 3}', { max: 2, on: ['failure'] }, ["1: the exit codes after which 'a' is tried again"]],
    [
      '{max: 2, exit_codes: 3, when: [unknown_failure]}',
      { max: 2, on: ['failure'] },
      ["1: that 'a' is tried again after unknown_failure", "1: the exit codes after which 'a' is tried again"],
    ],
  ])('tries again after what `retry: %s` says', (said, retry, notes) => {
    const migrated = gitlab(`a: {script: [x], retry: ${said}}\n`);
    const parsed = parsePipeline(migrated.text);
    expect(parsed.ok).toBe(true);
    const [stage] = parsed.ok ? parsed.definition.stages : [];
    expect(stage?.retry).toMatchObject(retry);
    expect(told(migrated)).toEqual(notes);
  });

  it('tells of a job without a script, which fails and runs nothing of what stands before and after scripts', () => {
    const migrated = gitlab(
      'default: {before_script: [echo prepared], after_script: [echo tidied]}\na: {before_script: [echo own]}\nb: {trigger: other/project}\n',
    );
    expect(told(migrated)).toEqual([
      "2: 'a' has no script in this file",
      "2: 'a.before_script' has no counterpart here",
      "3: the pipeline that is started of 'b'",
    ]);
    expect(migrated.text.match(/not translated: a job without a script/g)).toHaveLength(2);
    expect(ranBy('sh', migrated.text)).toEqual({ status: 1, stdout: '' });
  });
});

describe('a file of Woodpecker', () => {
  it('becomes stages one after the other, or as they depend on each other', () => {
    const stagesOf = (text: string): unknown => {
      const parsed = parsePipeline(woodpecker(text).text);
      return parsed.ok && parsed.definition.stages.map(({ name, after }) => [name, after]);
    };
    const step = (name: string, more = ''): string => `  - {name: ${name}, image: alpine, commands: [x]${more}}\n`;
    expect(stagesOf(`steps:\n${step('a')}${step('b')}`)).toEqual([
      ['a', []],
      ['b', ['a']],
    ]);
    expect(stagesOf(`steps:\n${step('a')}${step('b')}${step('c', ', depends_on: [a]')}`)).toEqual([
      ['a', []],
      ['b', []],
      ['c', ['a']],
    ]);
    const long = 'a'.repeat(100);
    expect(stagesOf(`steps:\n${step(`${long}x`)}${step(`${long}y`)}${step('c', `, depends_on: [${long}y]`)}`)).toEqual([
      [long, []],
      [`${long} 2`, []],
      ['c', [`${long} 2`]],
    ]);
  });

  it('makes one stage of the steps of a matrix that share an image, so that each combination has a folder of its own', () => {
    const { text } = woodpecker(
      'matrix: {V: ["1", "2"]}\nsteps:\n  - {name: a, image: "x:${V}", commands: [one]}\n  - {name: b, image: "x:${V}", commands: [two]}\n',
    );
    const parsed = parsePipeline(text);
    expect(parsed.ok && parsed.definition.stages.map(({ name }) => name)).toEqual(['a (V=1)', 'a (V=2)']);
  });
});
