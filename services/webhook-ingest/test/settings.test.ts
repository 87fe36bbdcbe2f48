import { writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { readConfiguration } from '@penstock/config';
import { describe, expect, it } from 'vitest';
import { WEBHOOK_KEYS, webhookSettings } from '../src/settings.ts';

const settingsOf = (env: Record<string, string>, mode: 'development' | 'production' = 'production') =>
  webhookSettings(readConfiguration(WEBHOOK_KEYS, { env }), mode);
const TEMPLATE = 'engine: any\npipeline:\n  name: t\nstages:\n  a:\n    run: echo ${{ webhook.ref }}\n';

describe('the secrets of a production server', () => {
  it('missing, and nothing bounding who may push: a warning that says whose code it runs', () => {
    expect(settingsOf({}).warnings).toEqual([
      expect.stringMatching(/ANYONE'S CODE.*SERVICE_WEBHOOK_SECRET and SERVICE_WEBHOOK_TOKEN/u),
    ]);
    expect(settingsOf({ SERVICE_WEBHOOK_SECRET: 'x' }).warnings).toEqual([]);
    expect(settingsOf({ SERVICE_WEBHOOK_SECRET: 'x', SERVICE_WEBHOOK_UNSIGNED: 'true' }).warnings).toEqual([
      expect.stringContaining('SERVICE_WEBHOOK_TOKEN'),
    ]);
    expect(settingsOf({ SERVICE_WEBHOOK_REPOSITORIES: 'a/*' }).warnings).toEqual([
      expect.stringContaining('SERVICE_WEBHOOK_REPOSITORIES'),
    ]);
    expect(settingsOf({ SERVICE_WEBHOOK_SECRET: 'x', SERVICE_WEBHOOK_TOKEN: 'y' }).warnings).toEqual([]);
    expect(settingsOf({}, 'development').warnings).toEqual([]);
  });

  it('required and missing: no start', () => {
    expect(() => settingsOf({ SERVICE_WEBHOOK_REQUIRE_SECRET: 'true' })).toThrow(/SERVICE_WEBHOOK_SECRET/u);
    expect(settingsOf({ SERVICE_WEBHOOK_REQUIRE_SECRET: 'true', SERVICE_WEBHOOK_TOKEN: 'y' })).toMatchObject({
      settings: { unsigned: false },
      warnings: [],
    });
    expect(settingsOf({ SERVICE_WEBHOOK_REQUIRE_SECRET: 'true' }, 'development').settings.unsigned).toBe(false);
  });
});

describe('unsigned deliveries', () => {
  const unsigned = (env: Record<string, string>): unknown => settingsOf(env).settings.unsigned;

  it('are taken by default only while no provider has a secret', () => {
    expect(unsigned({})).toBe(true);
    expect(unsigned({ SERVICE_WEBHOOK_SECRET: 'x' })).toBe(false);
    expect(unsigned({ SERVICE_WEBHOOK_TOKEN: 'y' })).toBe(false);
    expect(unsigned({ SERVICE_WEBHOOK_SECRET: 'x', SERVICE_WEBHOOK_UNSIGNED: 'true' })).toBe(true);
    expect(unsigned({ SERVICE_WEBHOOK_UNSIGNED: 'false' })).toBe(false);
    expect(() =>
      unsigned({
        SERVICE_WEBHOOK_UNSIGNED: 'true',
        SERVICE_WEBHOOK_REQUIRE_SECRET: 'true',
        SERVICE_WEBHOOK_TOKEN: 'y',
      }),
    ).toThrow(/opposite things/u);
  });
});

describe('where the repositories of a provider are', () => {
  const homes = (env: Record<string, string>): unknown => settingsOf(env).settings.homes;

  it('is the host that is configured for it, by its pages or else by its API', () => {
    expect(homes({})).toEqual({});
    expect(homes({ GIT_HOST_BASE_URL: 'https://git.example' })).toEqual({ git_host_a: 'git.example' });
    expect(homes({ GIT_HOST_PROVIDER: 'gitlab', GIT_HOST_API_URL: 'https://Lab.example/api/v4' })).toEqual({
      git_host_b: 'lab.example',
    });
    expect(homes({ GIT_HOST_API_URL: 'https://api.git.example' })).toEqual({ git_host_a: 'git.example' });
  });
});

describe('the server template', () => {
  it('is a path, or the text itself where it holds a newline', () => {
    const file = join(tmpdir(), `penstock-template-${process.pid}.yaml`);
    writeFileSync(file, TEMPLATE);
    expect(settingsOf({ SERVICE_WEBHOOK_PIPELINE: file }).settings.template).toBe(TEMPLATE);
    expect(settingsOf({ SERVICE_WEBHOOK_PIPELINE: TEMPLATE }).settings.template).toBe(TEMPLATE.trim());
    expect(settingsOf({}).settings.template).toBeNull();
  });

  it('may have the values of a push in its name', () => {
    const named = TEMPLATE.replace('name: t', 'name: "t ${{ webhook.repository }}"');
    expect(settingsOf({ SERVICE_WEBHOOK_PIPELINE: named }).settings.template).toBe(named.trim());
    expect(() => settingsOf({ SERVICE_WEBHOOK_PIPELINE: named.replace('repository', 'branch') })).toThrow(/line 3/u);
  });

  it('hands a name that a push has a say in to no script and no extension', () => {
    const named = TEMPLATE.replace('name: t', 'name: "t ${{ webhook.repository }}"');
    const taken = (text: string) => settingsOf({ SERVICE_WEBHOOK_PIPELINE: text }).settings.template;
    const handing = `${named}\n  hand:\n    run: docker run \${{ pipeline . name }}\n`;
    expect(() => taken(handing)).toThrow(/no expression can use it/u);
    expect(() => taken(`${named}\n  use:\n    uses: build/tool@1\n`)).toThrow(/nothing can be used by 'uses'/u);
    const plain = handing.replace(' ${{ webhook.repository }}', '');
    expect(taken(plain)).toBe(plain.trim());
  });

  it('that is not there, or no pipeline, is refused at the start', () => {
    expect(() => settingsOf({ SERVICE_WEBHOOK_PIPELINE: '/nonexistent' })).toThrow(/SERVICE_WEBHOOK_PIPELINE/u);
    expect(() => settingsOf({ SERVICE_WEBHOOK_PIPELINE: 'pipeline:\n  nam: x' })).toThrow(
      /SERVICE_WEBHOOK_PIPELINE: .*line 2/su,
    );
  });
});

describe('where statuses go', () => {
  const hosts = (env: Record<string, string>) => settingsOf(env).settings.statusHosts;
  const tokens = { SERVICE_GIT_HOST_A_TOKEN: 'a', SERVICE_GIT_HOST_B_TOKEN: 'b' };
  const own = { GIT_HOST_API_URL: 'https://git.example/api' };

  it('nowhere without a token, else to the public APIs', () => {
    expect(hosts({})).toEqual({});
    expect(hosts(tokens)).toEqual({
      git_host_a: { apiUrl: 'https://api.github.com', token: 'a' },
      git_host_b: { apiUrl: 'https://gitlab.com/api/v4', token: 'b' },
    });
  });

  it("an API of one's own is that of the provider that is configured", () => {
    expect(hosts({ ...tokens, ...own, GIT_HOST_PROVIDER: 'github' })).toMatchObject({
      git_host_a: { apiUrl: own.GIT_HOST_API_URL },
      git_host_b: { apiUrl: 'https://gitlab.com/api/v4' },
    });
    expect(hosts({ ...tokens, ...own, GIT_HOST_PROVIDER: 'gitlab' })).toMatchObject({
      git_host_a: { apiUrl: 'https://api.github.com' },
      git_host_b: { apiUrl: own.GIT_HOST_API_URL },
    });
    expect(hosts({ SERVICE_GIT_HOST_B_TOKEN: 'b', ...own })).toMatchObject({
      git_host_b: { apiUrl: own.GIT_HOST_API_URL },
    });
  });
});
