/** Artifacts, reports and caches of a job. */
import { keptPatterns } from '../kept-patterns.ts';
import { markSeen, take, takeAll, takeMap, takeText, takeTexts, textsOf, type SourceMap } from '../source.ts';
import type { Ledger } from '../ledger.ts';
import { takeFlag, takeWord } from '../words.ts';
import { durationOf } from './duration.ts';
import { plainPath, type JobContext } from './job-context.ts';

export function keepFiles(context: JobContext, map: SourceMap): void {
  const { defaults, ledger, stage } = context;
  const artifacts = takeMap(map, 'artifacts') ?? takeMap(defaults, 'artifacts');
  if (artifacts === undefined) return;
  for (const path of takeTexts(artifacts, 'paths')) {
    const plain = plainPath(path, context);
    if (plain === undefined) ledger.tell(artifacts.line, `the artifact ${path}`, 'patterns are plain texts');
    else stage.artifacts.paths.push(...keptPatterns(plain));
  }
  stage.artifacts.paths.push(
    ...takeTexts(artifacts, 'exclude')
      .filter((path) => !path.includes('$'))
      .map((path) => `!${path}`),
  );
  const when = takeWord(artifacts, 'when', {
    ledger,
    of: `the artifacts of '${stage.name}'`,
    words: ['on_success', 'on_failure', 'always'],
    otherwise: 'they are kept where the stage has succeeded',
  });
  if (when !== undefined && stage.artifacts.paths.length > 0)
    stage.artifacts.when = when === 'on_failure' ? 'failure' : when === 'always' ? 'always' : 'success';
  const expire = takeText(artifacts, 'expire_in');
  if (expire !== undefined && stage.artifacts.paths.length > 0) {
    const duration = expire === 'never' ? '3650d' : durationOf(expire, 'd');
    if (duration === undefined) ledger.tell(artifacts.line, `how long artifacts are kept: ${expire}`);
    else stage.artifacts.expire = duration;
  }
  tellOfUntracked(ledger, artifacts, `the artifacts of '${stage.name}'`);
  for (const key of ['name', 'expose_as']) take(artifacts, key);
  tellOfReaders(ledger, artifacts, `the artifacts of '${stage.name}'`);
  const reports = takeMap(artifacts, 'reports');
  if (reports === undefined) return;
  stage.reports.push(...takeTexts(reports, 'junit'));
  for (const { key, line, value } of takeAll(reports)) {
    if (key === 'junit') continue;
    markSeen(value);
    ledger.tell(
      line,
      `the report '${key}' of '${stage.name}'`,
      key === 'dotenv'
        ? 'write values to $SERVICE_OUTPUT and declare them under `outputs`'
        : 'keep the file under `artifacts`',
    );
  }
}

export function keepCaches(context: JobContext, map: SourceMap): void {
  const { defaults, ledger, stage } = context;
  const node = take(map, 'cache') ?? take(defaults, 'cache');
  const maps = node?.kind === 'list' ? node.items : node === undefined ? [] : [node];
  for (const cache of maps) {
    if (cache.kind !== 'map') continue;
    const key = take(cache, 'key');
    const paths = takeTexts(cache, 'paths').flatMap((path) => plainPath(path, context) ?? []);
    const others = takeTexts(cache, 'fallback_keys').map(plainKey);
    // Untrusted runs leave nothing here that others find.
    take(cache, 'unprotect');
    tellOfCache(context, cache);
    let text = 'default';
    if (key?.kind === 'map') {
      const files = takeTexts(key, 'files');
      const prefix = takeText(key, 'prefix');
      text = `${prefix === undefined ? 'files' : plainKey(prefix)}-\${{ hash(${files.map((file) => `'${file}'`).join(', ')}) }}`;
    } else if (key !== undefined) text = plainKey(textsOf(key)[0] ?? 'default');
    if (paths.length === 0)
      ledger.tell(
        cache.line,
        `a cache of '${stage.name}' whose paths are made of variables`,
        'caches are files of the working folder, or below ~/',
      );
    else if (!stage.caches.some((one) => one.key === text))
      stage.caches.push({
        key: text,
        paths,
        restore: [...(text.includes('hash(') ? [`${text.split('${{')[0] ?? ''}`] : []), ...others],
      });
  }
}

/** A cache here is looked for by each stage that names it, and saved by the first that succeeds and has found nothing. */
function tellOfCache({ ledger, stage }: JobContext, cache: SourceMap): void {
  const of = `a cache of '${stage.name}'`;
  const policy = takeWord(cache, 'policy', {
    ledger,
    of,
    words: ['pull', 'push', 'pull-push'],
    otherwise: 'it is looked for and saved',
  });
  const remedy = 'a stage looks for its caches, and saves what was not there: see `cache`';
  if (policy === 'pull' || policy === 'push')
    ledger.tell(cache.line, `'policy: ${policy}' of ${of}, which is looked for and saved here`, remedy);
  const when = takeWord(cache, 'when', {
    ledger,
    of,
    words: ['on_success', 'on_failure', 'always'],
    otherwise: 'it is saved where the stage has succeeded',
  });
  if (when === 'on_failure' || when === 'always')
    ledger.tell(cache.line, `'when: ${when}' of ${of}`, 'it is saved where the stage has succeeded');
  tellOfUntracked(ledger, cache, of);
}

function tellOfReaders(ledger: Ledger, artifacts: SourceMap, of: string): void {
  const told = { ledger, of, otherwise: 'whoever may read the run reads them' };
  const isPublic = takeFlag(artifacts, 'public', told);
  const access = takeWord(artifacts, 'access', { ...told, words: ['all', 'developer', 'maintainer', 'none'] });
  if (isPublic === false || (access !== undefined && access !== 'all'))
    ledger.tell(artifacts.line, `who may read ${of}`, `${told.otherwise}: keep what all of these may see`);
}

function tellOfUntracked(ledger: Ledger, map: SourceMap, of: string): void {
  const isUntracked = takeFlag(map, 'untracked', { ledger, of, otherwise: 'what `paths` names is kept' });
  if (isUntracked === true) ledger.tell(map.line, `'untracked' of ${of}`, 'name the files under `paths`');
}

/** Variables of a key stand for the branch, most of the time, which a cache has by itself. */
function plainKey(text: string): string {
  const plain = text.replaceAll(/\$\{?(\w+)\}?/g, (_, name: string) =>
    name.includes('REF') || name.includes('BRANCH') ? 'ref' : name.toLowerCase(),
  );
  return plain === '' ? 'default' : plain;
}
