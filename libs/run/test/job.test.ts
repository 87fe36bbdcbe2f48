import { describe, expect, it } from 'vitest';
import { groupOf, newRun, planOf, viewOf, workOf, type TriggerOrigin } from '@penstock/run';
import { createdEvent, pipeline, RUN_ID, stage, DrivenRun } from './support.ts';

const output = { kind: 'path', path: ['stages', 'a', 'outputs', 'v'] } as const;

describe('what a granted attempt executes', () => {
  it('values come as bindings and environment, never as shell text', () => {
    const hostile = '$(touch /tmp/pwned) `id` "; rm -rf /';
    const driven = new DrivenRun(
      pipeline(
        stage('a', { outputs: ['v'] }),
        stage('b', {
          after: ['a'],
          env: { GREETING: ['hello ', { expression: output }] },
          workdir: ['out/', { expression: { kind: 'path', path: ['run', 'id'] } }],
          commands: [{ script: 'echo "$V"', bindings: { V: output } }],
        }),
      ),
    );
    driven.grant('a');
    driven.succeed('a', { v: hostile });
    const work = workOf(driven.run, planOf(driven.definition), 'b');
    expect(work.commands).toEqual([{ script: 'echo "$V"', bindings: { V: hostile } }]);
    expect(work.env).toEqual({ GREETING: `hello ${hostile}` });
    expect(work.workdir).toBe(`out/${RUN_ID}`);
  });

  it('has every variable, whatever it is called', () => {
    const env = JSON.parse('{"__proto__": ["x"], "constructor": ["y"]}') as Record<string, string[]>;
    const expression = { kind: 'path', path: ['env', '__proto__'] } as const;
    const isX = { kind: 'binary', operator: '==', left: expression, right: { kind: 'literal', value: 'x' } } as const;
    const commands = [{ script: 'echo "$V"', bindings: { V: expression } }];
    const driven = new DrivenRun(pipeline(stage('a', { env, when: isX, commands })));
    expect(driven.queued()).toEqual(['a']);
    const work = workOf(driven.run, planOf(driven.definition), 'a');
    expect(Object.entries(work.env)).toEqual([
      ['__proto__', 'x'],
      ['constructor', 'y'],
    ]);
    expect(work.commands).toEqual([{ script: 'echo "$V"', bindings: { V: 'x' } }]);
  });

  it('is not made of texts within expressions that come to more than 8 MiB, whatever is left of them', () => {
    const text = { kind: 'text', parts: Array.from({ length: 100 }, () => ({ expression: output })) } as const;
    const equal = { kind: 'binary', operator: '==', left: text, right: text } as const;
    const driven = new DrivenRun(
      pipeline(stage('a', { outputs: ['v'] }), stage('b', { after: ['a'], env: { SAME: [{ expression: equal }] } })),
    );
    driven.grant('a');
    driven.succeed('a', { v: 'y'.repeat(60_000) });
    expect(() => workOf(driven.run, planOf(driven.definition), 'b')).toThrow('too large to be sent');
  });

  it('what comes before a stage is looked for only where some stage keeps files', () => {
    const namesOfChain = ['a', 'b', 'c'];
    const looked = (more: Parameters<typeof stage>[1]): number => {
      const stages = namesOfChain.map((name, index) =>
        stage(name, { ...more, after: namesOfChain.slice(0, index).slice(-1) }),
      );
      const definition = pipeline(...stages);
      const plan = planOf(definition);
      let count = 0;
      const counting = plan.stages.map((planned) => ({
        ...planned,
        get dependencies() {
          count += 1;
          return planned.dependencies;
        },
      }));
      workOf(newRun(RUN_ID, createdEvent(), plan), { ...plan, stages: counting }, 'c');
      return count;
    };
    expect(looked({})).toBe(0);
    expect(looked({ artifacts: { paths: ['out'], when: 'success', required: true } })).toBeGreaterThan(0);
  });

  it('kept files of earlier stages are in the order in which these come after each other, wherever the file has them, and else in that of the file', () => {
    const keeps = { artifacts: { paths: ['dist'], when: 'success', required: true } } as const;
    const stages = [
      stage('deploy', { after: ['sign', 'late', 'early'] }),
      stage('sign', { ...keeps, after: ['pack'] }),
      stage('early', keeps),
      stage('late', keeps),
      stage('pack', { ...keeps, after: ['build'] }),
      stage('build', keeps),
      stage('fresh', { after: ['sign', 'pack'], workspace: 'fresh' }),
    ];
    const driven = new DrivenRun(pipeline(...stages));
    const kept = { manifest: 'f'.repeat(64), files: 1, bytes: 1, expiresAt: 9 };
    for (const name of ['late', 'build', 'pack', 'early', 'sign']) {
      driven.grant(name);
      driven.tell({ type: 'result', stage: name, attempt: 1, status: 'success', logBytes: 0, artifacts: kept });
    }
    const found = (name: string): string[] | undefined =>
      workOf(driven.run, planOf(driven.definition), name).inherits?.map((each) => each.stage);
    expect(found('deploy')).toEqual(['build', 'pack', 'sign', 'early', 'late']);
    expect(found('fresh')).toEqual(['pack', 'sign']);
  });

  it('its place is that of the file; what the run decides comes into the variables of a service, as data', () => {
    const image = { name: 'postgres:17' };
    const driven = new DrivenRun(
      pipeline(
        stage('a', { outputs: ['v'] }),
        stage('b', {
          after: ['a'],
          place: {
            image: { name: 'node:26' },
            services: [{ name: 'db', image, env: { V: ['v=', { expression: output }] }, ready: 'true' }],
            network: 'none',
          },
        }),
      ),
    );
    driven.grant('a');
    driven.succeed('a', { v: '$(id)\0' });
    const plan = planOf(driven.definition);
    expect(workOf(driven.run, plan, 'a')).not.toHaveProperty('place');
    expect(workOf(driven.run, plan, 'b').place).toEqual({
      image: { name: 'node:26' },
      services: [{ name: 'db', image, env: { V: 'v=$(id)' }, ready: 'true' }],
      network: 'none',
    });
  });

  it('the push that it runs for is in the environment, as data, and the file cannot put another in its place', () => {
    const definition = pipeline(stage('a', { env: { SERVICE_REF: ['mine'], OWN: ['1'] } }));
    const origin = {
      kind: 'webhook',
      repository: 'o/r',
      ref: 'refs/heads/$(touch x)\0',
      commit: 'c0ffee',
      provider: 'git_host_b',
    } as const;
    const run = newRun(RUN_ID, createdEvent({ origin }), planOf(definition));
    expect(workOf(run, planOf(definition), 'a').env).toEqual({
      OWN: '1',
      SERVICE_REPOSITORY: 'o/r',
      SERVICE_REF: 'refs/heads/$(touch x)',
      SERVICE_COMMIT: 'c0ffee',
      SERVICE_PROVIDER: 'git_host_b',
    });
  });

  it('the inputs of the run are values of expressions, and variables of every stage that is no extension’s', () => {
    const expression = { kind: 'path', path: ['inputs', 'dry-run'] } as const;
    const input = { type: 'string', description: '', required: false, options: [] } as const;
    const definition = {
      ...pipeline(
        stage('a', { commands: [{ script: 'echo "$V"', bindings: { V: expression } }], env: { INPUT_OWN: ['mine'] } }),
        stage('b', { extension: { id: 'build/node', version: '2.1.0', hash: 'f00d' }, env: { INPUT_NODE: ['24'] } }),
      ),
      inputs: [
        { ...input, name: 'dry-run', variable: 'INPUT_DRY_RUN' },
        { ...input, name: 'own', variable: 'INPUT_OWN' },
      ],
    };
    const created = createdEvent({ inputs: { 'dry-run': '$(touch x)', own: 'given' } });
    const run = newRun(RUN_ID, created, planOf(definition));
    const a = workOf(run, planOf(definition), 'a');
    expect(a.commands).toEqual([{ script: 'echo "$V"', bindings: { V: '$(touch x)' } }]);
    expect(a.env).toEqual({ INPUT_DRY_RUN: '$(touch x)', INPUT_OWN: 'mine' });
    expect(workOf(run, planOf(definition), 'b').env).toEqual({ INPUT_NODE: '24' });
    expect(viewOf(run).inputs).toEqual([
      { key: 'dry-run', value: '$(touch x)' },
      { key: 'own', value: 'given' },
    ]);
  });

  it('expressions know what began the run, for what, and by whom, as data', () => {
    const names = ['trigger', 'trusted', 'ref', 'commit', 'actor'];
    const env = Object.fromEntries(
      names.map((name) => [name, [{ expression: { kind: 'path' as const, path: ['run', name] } }]]),
    );
    const definition = pipeline(stage('a', { env }));
    const envOf = (origin: TriggerOrigin) =>
      workOf(newRun(RUN_ID, createdEvent({ origin }), planOf(definition)), planOf(definition), 'a').env;
    const ref = 'refs/heads/$(id)';
    expect(envOf({ kind: 'webhook', ref, commit: 'c0ffee', actor: '`id`', trusted: false })).toEqual({
      trigger: 'push',
      trusted: 'false',
      ref,
      commit: 'c0ffee',
      actor: '`id`',
    });
    expect(envOf({ kind: 'local' })).toEqual({ trigger: 'local', trusted: 'true', ref: '', commit: '', actor: '' });
  });

  it('the extension of a stage goes with it', () => {
    const extension = { id: 'build/node', version: '2.1.0', hash: 'f00d' };
    const driven = new DrivenRun(pipeline(stage('a', { extension }), stage('b')));
    expect(workOf(driven.run, planOf(driven.definition), 'a').extension).toEqual(extension);
    expect(workOf(driven.run, planOf(driven.definition), 'b')).not.toHaveProperty('extension');
  });

  it('a value that is missing is the empty text', () => {
    const driven = new DrivenRun(
      pipeline(stage('a'), stage('b', { commands: [{ script: 'x', bindings: { V: output } }] })),
    );
    expect(workOf(driven.run, planOf(driven.definition), 'b').commands[0]?.bindings).toEqual({ V: '' });
  });

  it('a stage of another pipeline is a mistake of the caller', () => {
    const driven = new DrivenRun(pipeline(stage('a')));
    expect(() => workOf(driven.run, planOf(driven.definition), 'nobody')).toThrow(RangeError);
  });
});

describe('the concurrency group', () => {
  const groupFor = (ref: string | undefined): string | undefined => {
    const plan = planOf({
      ...pipeline(stage('a')),
      concurrency: { group: [{ expression: { kind: 'path', path: ['webhook', 'ref'] } }], cancelInProgress: false },
    });
    return groupOf(newRun(RUN_ID, createdEvent({ origin: { kind: 'webhook', ref } }), plan), plan);
  };

  it('is evaluated when the run is created; an empty one is none', () => {
    expect(groupFor('refs/heads/main')).toBe('refs/heads/main');
    expect(groupFor(undefined)).toBeUndefined();
  });
});
