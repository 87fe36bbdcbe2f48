/** Where the page is: its address as a signal. Addresses are below `/dashboard/`, which nothing but this file knows. */
import { computed, signal } from '@preact/signals';
import { focusContent } from './parts/focus.ts';

const BASE = '/dashboard';

interface Place {
  /** Begins with a slash: `/runs/0192…` */
  readonly path: string;
  readonly query: URLSearchParams;
}

const here = signal(read());

export const place = computed(() => here.value);

addEventListener('popstate', () => {
  const before = here.peek().path;
  here.value = read();
  if (here.peek().path !== before) focusContent();
});

/** `to` is a path of the dashboard, with its query: `/runs?status=FAILED`. */
export function go(to: string, { replace = false }: { readonly replace?: boolean } = {}): void {
  if (replace) history.replaceState(null, '', hrefOf(to));
  else history.pushState(null, '', hrefOf(to));
  const before = here.peek().path;
  here.value = read();
  if (here.peek().path === before) return;
  scrollTo(0, 0);
  focusContent();
}

/** The same page with other parameters; null takes one away. */
export function withQuery(changes: Readonly<Record<string, string | null>>): string {
  const { path, query } = here.peek();
  const next = new URLSearchParams(query);
  for (const [name, value] of Object.entries(changes)) {
    if (value === null || value === '') next.delete(name);
    else next.set(name, value);
  }
  const text = next.toString();
  return text === '' ? path : `${path}?${text}`;
}

export function hrefOf(to: string): string {
  return `${BASE}${to}`;
}

/** Follows links of the dashboard without loading the page anew; every other click stays the browser's. */
export function followLinks(event: MouseEvent): void {
  if (event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey)
    return;
  const link = event.target instanceof Element ? event.target.closest('a') : null;
  if (link === null || link.target !== '' || link.hasAttribute('download') || link.origin !== location.origin) return;
  if (!link.pathname.startsWith(`${BASE}/`)) return;
  // A place of this very page, such as its content: the browser takes the focus there.
  if (link.hash !== '' && link.pathname === location.pathname && link.search === location.search) return;
  event.preventDefault();
  go(`${link.pathname.slice(BASE.length)}${link.search}`);
}

function read(): Place {
  const path = location.pathname.startsWith(`${BASE}/`) ? location.pathname.slice(BASE.length) : '/';
  return { path: decoded(path), query: new URLSearchParams(location.search) };
}

/** A path that is no valid escape stays as it stands. */
function decoded(path: string): string {
  try {
    return decodeURIComponent(path);
  } catch {
    return path;
  }
}
