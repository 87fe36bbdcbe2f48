/** docs/security.md says of every program of the attack suite where it is held, as the suite itself does. */
import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { heldTable } from './programs.ts';

it('docs/security.md has the table of the attack suite', () => {
  const page = readFileSync(new URL('../../docs/security.md', import.meta.url), 'utf8');
  expect(page.split(/<!-- attacks: .*-->\n/)[1]?.trim()).toBe(heldTable());
});
