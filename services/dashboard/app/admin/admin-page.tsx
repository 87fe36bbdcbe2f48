/** What whoever runs the server looks at: how it stands, its runner tokens, who did what. The server decides who may. */
import type { JSX } from 'preact';
import { Empty } from '../parts/states.tsx';
import { hrefOf } from '../router.ts';
import { AuditPart } from './audit-part.tsx';
import { LettersPart } from './letters-part.tsx';
import { PeoplePart } from './people-part.tsx';
import { StatusPart } from './status-part.tsx';
import { TokensPart } from './tokens-part.tsx';
import { setTitle } from '../parts/title.ts';

const PARTS = [
  { part: '', title: 'Status', show: StatusPart },
  { part: 'tokens', title: 'Runner tokens', show: TokensPart },
  { part: 'people', title: 'People', show: PeoplePart },
  { part: 'letters', title: 'Dead letters', show: LettersPart },
  { part: 'audit', title: 'Audit log', show: AuditPart },
] as const;

export function AdminPage({ part }: { readonly part: string }): JSX.Element {
  const shown = PARTS.find((each) => each.part === part);
  setTitle(shown?.title ?? 'Admin');
  return (
    <>
      <h1>Admin</h1>
      <nav class="views" aria-label="Parts of the administration">
        {PARTS.map((each) => (
          <a
            key={each.part}
            href={hrefOf(each.part === '' ? '/admin' : `/admin/${each.part}`)}
            aria-current={each === shown ? 'page' : undefined}
          >
            {each.title}
          </a>
        ))}
      </nav>
      {shown === undefined ? (
        <Empty title="There is no such part">
          <p>
            <a href={hrefOf('/admin')}>Go to the status</a>
          </p>
        </Empty>
      ) : (
        <shown.show />
      )}
    </>
  );
}
