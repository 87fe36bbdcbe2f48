/** The documents say what is so: named tests exist, the table of variables is the code's, links lead somewhere. */
import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { hasCurrentTable, unknownVariables } from '@penstock/config';
import { describe, expect, it } from 'vitest';

const root = fileURLToPath(new URL('../../', import.meta.url));
const read = (path: string): string => readFileSync(join(root, path), 'utf8');

describe('docs/guarantees.md', () => {
  const named = [...read('docs/guarantees.md').matchAll(/^- `([^`]+\.ts)`: "(.+)"$/gm)].map(
    ([, file = '', title = '']) => ({ file, title }),
  );

  it('names a test for every promise', () => {
    const [promises = ''] = read('docs/guarantees.md').split('## What is not promised');
    const without = promises.split(/\n(?=\*\*|## )/).filter((part) => part.startsWith('**') && !part.includes('\n- `'));
    expect(without).toEqual([]);
    expect(named.length).toBeGreaterThan(30);
  });

  it.each(named)('$file has "$title"', ({ file, title }) => {
    // In the source a quote inside a quoted title has a backslash before it.
    expect(read(file).replaceAll("\\'", "'")).toContain(title);
  });
});

describe('docs/operating.md', () => {
  it('has the table of variables as the code declares them (withCurrentTable makes it anew)', () => {
    expect(hasCurrentTable(read('docs/operating.md'))).toBe(true);
  });
});

/** Which stages find in their environment. */
const OF_STAGES = new Set(
  'COMMIT EXTENSION_PATH ID_TOKEN_FILE MASK OUTPUT PROVIDER REF REPOSITORY'.split(' ').map((name) => `SERVICE_${name}`),
);
const DOCUMENTS = [
  'README.md',
  ...readdirSync(join(root, 'docs'))
    .filter((name) => name.endsWith('.md'))
    .map((name) => join('docs', name)),
];

describe('deploy/systemd/penstock.service', () => {
  const unit = read('deploy/systemd/penstock.service');

  it('takes no device from the server: sandboxes need /dev/net/tun', () => {
    // ProtectClock= does, with systemd 245 to 251.
    expect(unit).not.toMatch(/^(?:ProtectClock|PrivateDevices|DeviceAllow|DevicePolicy)=/m);
  });

  it('starts what is there, by settings that systemd knows, where there is one to ask', () => {
    const [, command = ''] = /^ExecStart=\/opt\/penstock\/(\S+)/m.exec(unit) ?? [];
    expect(statSync(join(root, command)).mode & 0o111).toBe(0o111);
    const folder = mkdtempSync(join(tmpdir(), 'penstock-unit-'));
    try {
      const file = join(folder, 'penstock.service');
      writeFileSync(file, unit.replaceAll('/opt/penstock/', root));
      const { stdout, stderr, error } = spawnSync('systemd-analyze', ['verify', file], { encoding: 'utf8' });
      // Whoever checks may have no systemd.
      expect(error === undefined ? stdout + stderr : '').not.toMatch(/penstock\.service/u);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});

describe('variables', () => {
  const namedIn = (document: string): string[] =>
    [...read(document).matchAll(/(?<![$\w])(?:SERVICE|JWT|GIT_HOST)_[A-Z_]*[A-Z]\b/g)].map(([name]) => name);

  it('stand in docs/operating.md', () => {
    expect(new Set(namedIn('docs/operating.md')).size).toBeGreaterThan(60);
  });

  it.each(DOCUMENTS)('that %s names are there', (document) => {
    const unknown = unknownVariables(Object.fromEntries(namedIn(document).map((name) => [name, 'x'])));
    expect(unknown.filter(({ name }) => !OF_STAGES.has(name))).toEqual([]);
  });
});

describe('docs/glossary.md', () => {
  const terms = [...read('docs/glossary.md').matchAll(/^\| ([^|]+) \| ([^|]+\.) \| `([^`]+)` \|$/gm)].map(
    ([, term = '', meaning = '', file = '']) => ({ term, meaning, file }),
  );

  it('has its terms in their order, each once, with a sentence', () => {
    const names = terms.map(({ term }) => term);
    expect(names).toEqual([...new Set(names)].toSorted((a, b) => a.localeCompare(b)));
    expect(names.length).toBe(read('docs/glossary.md').match(/^\| (?!term)[a-z]/gm)?.length);
    expect(terms.filter(({ meaning }) => !/^[A-Z]/.test(meaning))).toEqual([]);
  });

  it.each(terms)('$term lives in $file', ({ file }) => {
    expect(existsSync(join(root, file))).toBe(true);
  });
});

describe('links between documents', () => {
  const documents = ['', 'adr'].flatMap((folder) =>
    readdirSync(join(root, 'docs', folder))
      .filter((name) => name.endsWith('.md'))
      .map((name) => join('docs', folder, name)),
  );

  it.each([...documents, 'README.md', 'CHANGELOG.md'])('the links of %s lead to files', (document) => {
    const targets = [...read(document).matchAll(/\]\((?!https?:)([^)#]+)/g)].map(([, target = '']) =>
      join(dirname(document), target),
    );
    expect(targets.filter((target) => !existsSync(join(root, target)))).toEqual([]);
  });

  // As GitHub makes them of headings.
  const anchorsOf = (document: string): Set<string> =>
    new Set(
      [...read(document).matchAll(/^#{1,6} (.+)$/gm)].map(([, heading = '']) =>
        heading
          .toLowerCase()
          .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
          .replaceAll(' ', '-'),
      ),
    );

  it.each([...documents, 'README.md'])('the links of %s lead to headings', (document) => {
    const links = [...read(document).matchAll(/\]\((?!https?:)([^)#]*)#([^)]+)\)/g)].map(
      ([, target = '', anchor = '']) => ({
        file: target === '' ? document : join(dirname(document), target),
        anchor,
      }),
    );
    const lost = links.filter(({ file, anchor }) => file.endsWith('.md') && !anchorsOf(file).has(anchor));
    expect(lost).toEqual([]);
  });
});
