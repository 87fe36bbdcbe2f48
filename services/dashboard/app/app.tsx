/** The frame around every page: where one can go, who is signed in, and the help for the keyboard. */
import { useSignal } from '@preact/signals';
import type { ComponentChildren, JSX } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { Dialog } from './parts/dialog.tsx';
import { Empty } from './parts/states.tsx';
import { Name } from './parts/name.tsx';
import { attempt, Notices } from './parts/notices.tsx';
import { keysHere, useKeys } from './parts/keys.ts';
import { AdminPage } from './admin/admin-page.tsx';
import { AccountPage } from './pages/account-page.tsx';
import { DeliveriesPage } from './pages/deliveries-page.tsx';
import { ExtensionPage, ExtensionsPage } from './pages/extensions-page.tsx';
import { HooksPage } from './pages/hooks-page.tsx';
import { SchedulesPage } from './pages/schedules-page.tsx';
import { PipelinesPage } from './pipelines/pipelines-page.tsx';
import { TriggerPage } from './trigger/trigger-page.tsx';
import { ComparePage } from './run/comparison.tsx';
import { RunPage } from './run/run-page.tsx';
import { RunsPage } from './runs/runs-page.tsx';
import { acceptOffer, offered, refusal, refuseOffer, session, signIn, signOut } from './session/session.ts';
import { followLinks, go, hrefOf, place } from './router.ts';
import { setTitle } from './parts/title.ts';

const PAGES: readonly { readonly path: string; readonly title: string; readonly isForAdmins?: true }[] = [
  { path: '/runs', title: 'Runs' },
  { path: '/pipelines', title: 'Pipelines' },
  { path: '/trigger', title: 'Trigger' },
  { path: '/schedules', title: 'Schedules' },
  { path: '/deliveries', title: 'Deliveries' },
  { path: '/hooks', title: 'Hooks' },
  { path: '/extensions', title: 'Extensions' },
  { path: '/account', title: 'Account' },
  { path: '/admin', title: 'Admin', isForAdmins: true },
];

export function App(): JSX.Element {
  const helpIsOpen = useSignal(false);
  useKeys([
    { key: '?', says: 'Show the keys', run: () => (helpIsOpen.value = true) },
    { key: 'g', says: 'Go to the runs', run: () => go('/runs') },
  ]);
  useEffect(() => {
    document.addEventListener('click', followLinks);
    return () => document.removeEventListener('click', followLinks);
  }, []);
  const { path } = place.value;
  const said = useSignal('');
  const saidOf = useRef(path);
  useEffect(() => {
    // A page that the browser has loaded itself it has said itself.
    if (saidOf.current !== path) said.value = document.title;
    saidOf.current = path;
  }, [path]);
  return (
    <>
      <a class="skip" href="#main">
        Skip to the content
      </a>
      <header class="bar">
        <a class="brand" href={hrefOf('/')}>
          Penstock
        </a>
        <nav aria-label="Pages">
          {PAGES.filter(({ isForAdmins }) => isForAdmins !== true || session.value?.isAdmin === true).map(
            ({ path, title }) => (
              <a key={path} href={hrefOf(path)} aria-current={isAt(path) ? 'page' : undefined}>
                {title}
              </a>
            ),
          )}
        </nav>
        <button
          type="button"
          class="quiet"
          title="Keyboard (?)"
          aria-label="Keyboard"
          onClick={() => (helpIsOpen.value = true)}
        >
          ?
        </button>
        <Who />
      </header>
      <main id="main" tabIndex={-1}>
        {refusal.value === null ? null : (
          <p class="problem" role="alert">
            {refusal.value === 'access_denied'
              ? 'The login was declined, or this account may not log in here.'
              : 'The login did not succeed.'}{' '}
            <button type="button" onClick={signIn}>
              Sign in again
            </button>
          </p>
        )}
        <Page />
      </main>
      <p class="unsaid" role="status">
        {said.value}
      </p>
      <Notices />
      <Dialog title="Keyboard" isOpen={helpIsOpen.value} onClose={() => (helpIsOpen.value = false)}>
        <dl class="keys">
          {keysHere().map(({ key, says }) => (
            <div key={key}>
              <dt>
                <kbd>{key}</kbd>
              </dt>
              <dd>{says}</dd>
            </div>
          ))}
        </dl>
      </Dialog>
    </>
  );
}

/** The dashboard begins with the runs: its root is their page as well. */
function isAt(page: string): boolean {
  const path = place.value.path === '/' ? '/runs' : place.value.path;
  return path === page || path.startsWith(`${page}/`);
}

function Page(): ComponentChildren {
  if (offered.value !== null) return <Offer email={offered.value.email} />;
  const { path } = place.value;
  if (path === '/' || path === '/runs') return <RunsPage />;
  const run = /^\/runs\/([^/]+)$/u.exec(path)?.[1];
  if (run !== undefined) return <RunPage key={run} id={run} />;
  if (path === '/pipelines') {
    const name = place.value.query.get('name');
    return <PipelinesPage key={name ?? ''} name={name} />;
  }
  if (path === '/compare') {
    const [a, b] = [place.value.query.get('a') ?? '', place.value.query.get('b') ?? ''];
    return <ComparePage key={`${a} ${b}`} a={a} b={b} />;
  }
  if (path === '/trigger') return <TriggerPage />;
  if (path === '/schedules') return <SchedulesPage />;
  if (path === '/deliveries') return <DeliveriesPage />;
  if (path === '/hooks') return <HooksPage />;
  if (path === '/account') return <AccountPage />;
  if (path === '/admin' || path.startsWith('/admin/')) return <AdminPage part={path.slice('/admin/'.length)} />;
  if (path === '/extensions') return <ExtensionsPage />;
  const extension = /^\/extensions\/([^/]+\/[^/]+)$/u.exec(path)?.[1];
  if (extension !== undefined) return <ExtensionPage key={extension} id={extension} />;
  setTitle('Not found');
  return (
    <Empty title="There is no such page">
      <p>
        Nothing of the dashboard is at this address. <a href={hrefOf('/runs')}>Go to the runs</a>
      </p>
    </Empty>
  );
}

/** A login that this tab has not begun: see SIGNED-IN-2. */
function Offer({ email }: { readonly email: string }): JSX.Element {
  return (
    <Empty title="A login that this tab did not begin">
      <p>
        This address came with a login as{' '}
        <strong>
          <Name text={email} />
        </strong>
        . Go on only if that is you: what you do here is done as them.
      </p>
      <p class="row">
        <button type="button" onClick={acceptOffer}>
          That is me, go on
        </button>
        <button type="button" class="quiet" onClick={refuseOffer}>
          Forget it
        </button>
      </p>
    </Empty>
  );
}

function Who(): JSX.Element {
  const held = session.value;
  if (held === null)
    return (
      <button type="button" onClick={signIn}>
        Sign in
      </button>
    );
  return (
    <span class="who">
      <span class="email">
        <Name text={held.email} />
      </span>
      <button
        type="button"
        class="quiet"
        title="Ends all your sessions, on all devices"
        onClick={() => void attempt('Signed out, on all devices.', signOut)}
      >
        Sign out
      </button>
    </span>
  );
}
