/** Steps of GitHub Actions that use somebody's action, as far as what they do has a counterpart here. */
import { lookup } from '../lookup.ts';
import type { DraftStage } from '../draft.ts';
import { keptPatterns } from '../kept-patterns.ts';
import type { Ledger } from '../ledger.ts';
import { axisValues } from './matrix.ts';
import { takeAll, takeText, type SourceMap } from '../source.ts';
import { takeWord } from '../words.ts';

export interface ActionContext {
  readonly stage: DraftStage;
  readonly ledger: Ledger;
  /** The step's own map, and its `with`. */
  readonly step: SourceMap;
  readonly given: SourceMap | undefined;
  /** A text with expressions of ours; undefined where that is not possible. */
  template(text: string): string | undefined;
  /** A text for the inside of double quotes of a script. */
  shellText(text: string): string;
  /** Names of artifacts that were kept, to the stages that keep them. */
  readonly kept: Map<string, string[]>;
}

/** Commands that take the step's place; undefined: the action is not known. */
export type Action = (context: ActionContext) => readonly string[];

const IMAGES: Readonly<
  Record<string, { readonly image: string; readonly version: readonly string[]; readonly plain: string }>
> = lookup({
  'actions/setup-node': { image: 'node', version: ['node-version'], plain: 'lts' },
  'actions/setup-python': { image: 'python', version: ['python-version'], plain: '3' },
  'actions/setup-go': { image: 'golang', version: ['go-version'], plain: '1' },
  'actions/setup-java': { image: 'eclipse-temurin', version: ['java-version'], plain: '21' },
  'ruby/setup-ruby': { image: 'ruby', version: ['ruby-version'], plain: '3' },
  'shivammathur/setup-php': { image: 'php', version: ['php-version'], plain: '8' },
  'dtolnay/rust-toolchain': { image: 'rust', version: ['toolchain'], plain: '1' },
  'actions-rs/toolchain': { image: 'rust', version: ['toolchain'], plain: '1' },
  'actions-rust-lang/setup-rust-toolchain': { image: 'rust', version: ['toolchain'], plain: '1' },
  'oven-sh/setup-bun': { image: 'oven/bun', version: ['bun-version'], plain: '1' },
  'denoland/setup-deno': { image: 'denoland/deno', version: ['deno-version'], plain: 'latest' },
  'erlef/setup-beam': { image: 'elixir', version: ['elixir-version'], plain: 'latest' },
});
const CACHES: Readonly<Record<string, { readonly files: readonly string[]; readonly paths: readonly string[] }>> =
  lookup({
    npm: { files: ['**/package-lock.json'], paths: ['~/.npm'] },
    yarn: { files: ['**/yarn.lock'], paths: ['~/.cache/yarn'] },
    pnpm: { files: ['**/pnpm-lock.yaml'], paths: ['~/.local/share/pnpm/store'] },
    pip: { files: ['**/requirements*.txt', '**/pyproject.toml'], paths: ['~/.cache/pip'] },
    poetry: { files: ['**/poetry.lock'], paths: ['~/.cache/pypoetry'] },
    pipenv: { files: ['**/Pipfile.lock'], paths: ['~/.cache/pipenv'] },
    maven: { files: ['**/pom.xml'], paths: ['~/.m2/repository'] },
    gradle: { files: ['**/*.gradle*', '**/gradle-wrapper.properties'], paths: ['~/.gradle/caches'] },
    go: { files: ['**/go.sum'], paths: ['~/go/pkg/mod', '~/.cache/go-build'] },
  });

/** What takes the place of `uses: owner/name@version`. */
export function actionOf(uses: string): Action | undefined {
  const name = uses.split('@')[0]?.toLowerCase() ?? '';
  if (IMAGES[name] !== undefined) return (context) => setUp(name, uses, context);
  return ACTIONS[name];
}

const ACTIONS: Readonly<Record<string, Action>> = lookup({
  'actions/checkout': ({ ledger, given }) => {
    for (const { key, line } of takeAll(given))
      if (!['fetch-depth', 'persist-credentials', 'token', 'fetch-tags', 'show-progress', 'clean'].includes(key))
        ledger.tell(
          line,
          `'${key}' of the checkout`,
          'a stage has the files of its commit; fetch anything else by git',
        );
    return [];
  },
  'actions/cache': (context) => cache(context),
  'actions/cache/restore': (context) => cache(context),
  'actions/cache/save': (context) => cache(context),
  'swatinem/rust-cache': ({ stage, given }) => {
    takeAll(given);
    stage.caches.push({
      key: "rust-${{ hash('**/Cargo.lock') }}",
      paths: ['~/.cargo/registry', 'target'],
      restore: ['rust-'],
    });
    return [];
  },
  'actions/upload-artifact': uploadArtifact,
  'actions/upload-pages-artifact': uploadArtifact,
  'actions/download-artifact': downloadArtifact,
  'docker/setup-buildx-action': nothing,
  'docker/setup-qemu-action': nothing,
  'pnpm/action-setup': ({ given, shellText }) => {
    const version = given === undefined ? undefined : takeText(given, 'version');
    takeAll(given);
    return [`npm install --global "pnpm${version === undefined ? '' : `@${shellText(version)}`}"`];
  },
  'docker/login-action': ({ given, shellText }) => {
    const text = (key: string): string => shellText((given === undefined ? undefined : takeText(given, key)) ?? '');
    const registry = text('registry');
    const login = `printf %s "${text('password')}" | docker login --username "${text('username')}" --password-stdin`;
    return [registry === '' ? login : `${login} "${registry}"`];
  },
  'docker/build-push-action': buildImage,
});

function nothing({ given }: ActionContext): readonly string[] {
  takeAll(given);
  return [];
}

function setUp(name: string, uses: string, { stage, ledger, step, given, template }: ActionContext): readonly string[] {
  const { image, version: keys, plain } = IMAGES[name] ?? { image: name, version: [], plain: 'latest' };
  const said = keys
    .map((key) => (given === undefined ? undefined : takeText(given, key)))
    .find((text) => text !== undefined);
  const tag = said === undefined ? (toolchainOf(uses) ?? plain) : versionTag(template(said) ?? '', plain);
  if (given !== undefined) {
    const kind = takeText(given, 'cache') ?? (name === 'actions/setup-go' ? 'go' : undefined);
    const known = CACHES[kind === 'true' ? (name === 'ruby/setup-ruby' ? 'bundler' : 'go') : (kind ?? '')];
    if (known !== undefined)
      stage.caches.push({
        key: `${kind}-\${{ hash(${known.files.map((file) => `'${file}'`).join(', ')}) }}`,
        paths: [...known.paths],
        restore: [`${kind}-`],
      });
    else if (kind !== undefined && !['', 'true', 'false'].includes(kind))
      ledger.tell(step.line, `'cache: ${kind}' of '${uses}'`, 'write it as `cache`');
    takeText(given, 'distribution');
    takeText(given, 'check-latest');
    takeText(given, 'cache-dependency-path');
    takeText(given, 'bundler-cache');
  }
  const wanted = `${image}:${tag}`;
  const axis = /matrix\.([\w-]+)/.exec(tag)?.[1];
  for (const value of axis === undefined ? [] : axisValues(stage.matrix, axis))
    if (!/^\d[\d.]*$/.test(value))
      ledger.tell(
        step.line,
        `the version ${value}, which is no tag of the image ${image}`,
        'write versions as the image has them',
      );
  if (stage.image === undefined) stage.image = wanted;
  else if (stage.image !== wanted)
    ledger.tell(
      step.line,
      `'${uses}' beside the image ${stage.image}`,
      `take an image that has both, or install ${image} in the script`,
    );
  return name === 'ruby/setup-ruby' ? ['bundle install'] : [];
}

/** `dtolnay/rust-toolchain@1.79`, `@stable`. */
function toolchainOf(uses: string): string | undefined {
  const version = uses.split('@')[1] ?? '';
  return uses.startsWith('dtolnay/rust-toolchain') && /^\d+\.\d+/.test(version) ? version : undefined;
}

function versionTag(said: string, plain: string): string {
  if (said.includes('${{')) return said;
  const digits = /(\d+(?:\.\d+)*)/.exec(said)?.[1];
  if (/^(lts|latest|stable|nightly)/.test(said)) return said.startsWith('lts') ? 'lts' : plain;
  return digits ?? plain;
}

function cache({ stage, ledger, step, given, template }: ActionContext): readonly string[] {
  const said = given === undefined ? undefined : takeText(given, 'key');
  const key = said === undefined ? undefined : cacheKey(said, template);
  if (given === undefined || key === undefined) {
    ledger.tell(
      step.line,
      'the key of a cache, which has expressions without a counterpart',
      'write `cache` with a key of its own',
    );
    takeAll(given);
    return [];
  }
  const lines = (name: string): string[] => linesOf(takeText(given, name));
  const restore = lines('restore-keys').flatMap((text) => cacheKey(text, template) ?? []);
  if (!stage.caches.some((one) => one.key === key))
    stage.caches.push({
      key,
      paths: lines('path').map(cachePath),
      restore: restore.filter((text) => !text.includes('hash(')),
    });
  takeText(given, 'save-always');
  takeText(given, 'fail-on-cache-miss');
  return [];
}

function cacheKey(text: string, template: (text: string) => string | undefined): string | undefined {
  const hashes: string[] = [];
  const marked = text.replaceAll(/\$\{\{\s*hashFiles\(([^)]{0,2000})\)\s*\}\}/gi, (_, patterns: string) => {
    hashes.push(patterns);
    return `\u2060${hashes.length - 1}\u2060`;
  });
  return template(marked)?.replaceAll(
    /\u2060(\d+)\u2060/g,
    (_, index: string) => `\${{ hash(${hashes[Number(index)] ?? ''}) }}`,
  );
}

function cachePath(path: string): string {
  return path.replace(/^\$\{?HOME\}?\//, '~/').replace(/^\.\//, '');
}

function linesOf(text: string | undefined): string[] {
  return (text ?? '').split('\n').flatMap((line) => (line.trim() === '' ? [] : [line.trim()]));
}

function uploadArtifact({ stage, ledger, step, given, template, kept }: ActionContext): readonly string[] {
  const name = (given === undefined ? undefined : takeText(given, 'name')) ?? 'artifact';
  kept.set(name, [...(kept.get(name) ?? []), stage.name]);
  for (const path of linesOf(given === undefined ? undefined : takeText(given, 'path'))) {
    const pattern = template(path)?.replace(/^\.\//, '').replace(/\/$/, '');
    if (pattern === undefined || /^(~|\/|\$|!\/)/.test(pattern) || pattern.includes('${{'))
      ledger.tell(step.line, `the artifact ${path}`, 'artifacts are files of the working folder, named by patterns');
    else stage.artifacts.paths.push(...keptPatterns(pattern));
  }
  const days = given === undefined ? undefined : takeText(given, 'retention-days');
  if (days !== undefined && /^[1-9]\d*$/.test(days)) stage.artifacts.expire = `${days}d`;
  else if (days !== undefined && days !== '0')
    ledger.tell(step.line, `'retention-days: ${days}' of the artifact ${name}`, 'write a number of days as `expire`');
  const isMissing =
    given === undefined
      ? undefined
      : takeWord(given, 'if-no-files-found', {
          ledger,
          of: `the artifact ${name}`,
          words: ['warn', 'error', 'ignore'],
          otherwise: 'there need be none',
        });
  if (isMissing === 'error') stage.artifacts.required = true;
  takeAll(given);
  return [];
}

function downloadArtifact({ stage, ledger, step, given, kept }: ActionContext): readonly string[] {
  const name = given === undefined ? undefined : takeText(given, 'name');
  const path = given === undefined ? undefined : takeText(given, 'path');
  takeAll(given);
  if (path !== undefined && path !== '.' && path !== './')
    ledger.tell(
      step.line,
      `the artifacts laid out in ${path}`,
      'kept files lie where they lay in the stage that kept them',
    );
  const from = name === undefined ? [...kept.values()].flat() : (kept.get(name) ?? []);
  if (from.length === 0)
    ledger.tell(step.line, `the artifact ${name ?? ''} of no stage before`, 'name it under `artifacts: from`');
  for (const one of from) if (!stage.artifacts.from.includes(one)) stage.artifacts.from.push(one);
  return [];
}

function buildImage({ given, shellText }: ActionContext): readonly string[] {
  if (given === undefined) return ['docker build .'];
  const words = ['docker', 'buildx', 'build'];
  const file = takeText(given, 'file');
  if (file !== undefined) words.push('--file', `"${shellText(file)}"`);
  for (const tag of tagsOf(takeText(given, 'tags'))) words.push('--tag', `"${shellText(tag)}"`);
  for (const argument of linesOf(takeText(given, 'build-args'))) words.push('--build-arg', `"${shellText(argument)}"`);
  for (const [key, option] of [
    ['target', '--target'],
    ['platforms', '--platform'],
    ['labels', '--label'],
  ] as const)
    for (const value of linesOf(takeText(given, key))) words.push(option, `"${shellText(value)}"`);
  const push = takeText(given, 'push');
  if (push === 'true') words.push('--push');
  else if (takeText(given, 'load') === 'true') words.push('--load');
  const context = takeText(given, 'context') ?? '.';
  words.push(context === '.' ? '.' : `"${shellText(context)}"`);
  const command = words.join(' ');
  if (push === undefined || push === 'true' || push === 'false') return [command];
  return [`if [ "${shellText(push)}" = true ]; then ${command} --push; else ${command}; fi`];
}

function tagsOf(text: string | undefined): readonly string[] {
  return linesOf(text).flatMap((line) => line.split(',').map((tag) => tag.trim()));
}
