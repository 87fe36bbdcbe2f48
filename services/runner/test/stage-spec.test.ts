import type { Job } from '@penstock/bus';
import { noSecrets } from '@penstock/executor';
import { describe, expect, it } from 'vitest';
import { stageSpecOf, type StageToStart } from '../src/attempt/stage-spec.ts';
import { plainJob } from './plain-job.ts';

const job = { ...plainJob, attempt: 3 };
const folders = {
  workspace: '/w/shared',
  fresh: false,
  home: '/w/home',
  temporary: '/w/tmp',
  outputFile: '/w/home/out',
};

function spec(of: Partial<Job> = {}, more: Partial<StageToStart> = {}): ReturnType<typeof stageSpecOf> {
  return stageSpecOf({
    job: { ...job, ...of },
    prepared: { folders, packageFolder: undefined, maskFile: '/w/home/mask' },
    timeoutMs: 50,
    graceMs: undefined,
    user: undefined,
    environment: { PATH: '/bin', TZ: 'UTC', HIDDEN: 'of the runner' },
    sharesPrograms: true,
    lent: undefined,
    traced: {},
    secrets: noSecrets(),
    place: undefined,
    renewedFiles: [],
    leavings: undefined,
    ...more,
  });
}

describe('what a stage is started with', () => {
  it('has of the environment what is inherited, then lent, then said by the pipeline, then its secrets', () => {
    const lent = { TZ: 'lent', A: 'lent', B: 'lent' };
    const { env } = spec({ env: { A: 'own', B: 'own' } }, { lent, secrets: { ...noSecrets(), env: { B: 'secret' } } });
    expect(env).toMatchObject({ PATH: '/bin', TZ: 'lent', A: 'own', B: 'secret', HOME: '/w/home' });
    expect(env).not.toHaveProperty('HIDDEN');
  });

  it('finds the programs of its image alone where it has one', () => {
    expect(spec({}, { sharesPrograms: false }).env).not.toHaveProperty('PATH');
  });

  it('is told how often it was executed, which is not how often it was granted', () => {
    expect(spec().env['PENSTOCK_ATTEMPT']).toBe('3');
    expect(spec({ number: 2 }).env['PENSTOCK_ATTEMPT']).toBe('2');
  });

  it('runs in its working folder, or where its file says below that', () => {
    expect(spec().cwd).toBe('/w/shared');
    expect(spec({ workdir: '' }).cwd).toBe('/w/shared');
    expect(spec({ workdir: 'a/b' }).cwd).toBe('/w/shared/a/b');
  });

  it('has the time that is left after its preparation, and not that of its job', () => {
    expect(spec().timeoutMs).toBe(50);
  });

  it('sees the package of its extension', () => {
    const { env, contents } = spec(
      {},
      { prepared: { folders, packageFolder: '/w/package', maskFile: '/w/home/mask' } },
    );
    expect(env['SERVICE_EXTENSION_PATH']).toBe('/w/package');
    expect(contents).toContain('/w/package');
  });
});
