/**
 * The few pages that auth shows: plain HTML without a script. They stand under the narrow policy of every other answer, which leaves
 * forms and links, and lets in one style sheet beside: this one, by its hash. Every value in them is escaped.
 */
import { createHash } from 'node:crypto';

/** The dashboard's look (services/dashboard/app/styles), as far as a form needs one. */
const STYLE = `
:root { color-scheme: light dark; font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif;
  color: light-dark(#1d2125, #e4e7ea); background: light-dark(#fbfbfa, #14171a); }
body { max-width: 30rem; margin: 8vh auto; padding: 1.5rem 1.8rem; background: light-dark(#fff, #1b1f23);
  border: 1px solid light-dark(#d8d8d2, #33393f); border-radius: 10px; }
h1 { font-size: 1.35rem; margin: 0 0 0.8rem; }
p, dl { margin: 0 0 0.9rem; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: 0.2rem 1rem; }
dt { color: light-dark(#5c6670, #9aa4ae); }
dd { margin: 0; overflow-wrap: anywhere; }
label { display: grid; gap: 0.3rem; }
input, button { font: inherit; color: inherit; border-radius: 6px; padding: 0.4rem 0.8rem; border: 1px solid light-dark(#8a8f94, #5d666f); background: transparent; }
button { cursor: pointer; }
button[value="allow"], button:not([value]) { background: light-dark(#2563a8, #4b8fd8); color: light-dark(#fff, #08131f); border-color: transparent; }
[role="alert"] { color: light-dark(#b3261e, #ff8a80); }
:focus-visible { outline: 2px solid light-dark(#2563a8, #4b8fd8); outline-offset: 2px; }
@media (max-width: 34rem) { body { margin: 0; border: 0; border-radius: 0; } }
`;

/** Of every page. */
export const PAGE_HEADERS: Readonly<Record<string, string>> = {
  'Content-Type': 'text/html; charset=utf-8',
  'Content-Security-Policy': `default-src 'none'; style-src 'sha256-${createHash('sha256').update(STYLE).digest('base64')}'; frame-ancestors 'none'`,
};

const ESCAPES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

function escaped(text: string): string {
  return text.replace(/[&<>"']/gu, (character) => ESCAPES[character] ?? '');
}

function page(title: string, body: string): string {
  return `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>${escaped(title)} - Penstock</title><style>${STYLE}</style></head>
<body>
<h1>${escaped(title)}</h1>
${body}
</body>
</html>
`;
}

export function messagePage(title: string, text: string): string {
  return page(title, `<p>${escaped(text)}</p>`);
}

export function codePage(action: string, userCode: string, problem?: string): string {
  return page(
    'Log in a device',
    `${problem === undefined ? '' : `<p role="alert">${escaped(problem)}</p>\n`}<form method="post" action="${escaped(action)}">
<p><label>The code that your terminal or device shows: <input name="user_code" value="${escaped(userCode)}" size="12" maxlength="40" autocomplete="off" autocapitalize="characters" spellcheck="false" required autofocus></label></p>
<p><button type="submit">Continue</button></p>
</form>
<p>Continue only if you began this yourself.</p>`,
  );
}

export interface ConsentView {
  readonly action: string;
  readonly csrf: string;
  readonly login: string;
  readonly userCode: string;
  readonly ip: string;
  readonly agent: string;
  readonly askedAt: string;
}

export function deviceConsentPage({ action, csrf, login, userCode, ip, agent, askedAt }: ConsentView): string {
  return page(
    'Let this device act as you?',
    `<p>A device asks to be logged in as <strong>${escaped(login)}</strong>. It could then start and cancel your pipelines and read their logs.</p>
<dl>
<dt>Code</dt><dd>${escaped(userCode)}</dd>
<dt>Asked at</dt><dd>${escaped(askedAt)}</dd>
<dt>From address</dt><dd>${escaped(ip === '' ? 'unknown' : ip)}</dd>
<dt>With</dt><dd>${escaped(agent === '' ? 'unknown' : agent)}</dd>
</dl>
<p>If somebody sent you this code, or it is not the one that your own device shows, refuse.</p>
<form method="post" action="${escaped(action)}">
<input type="hidden" name="csrf" value="${escaped(csrf)}">
<p><button type="submit" name="decision" value="allow">Allow</button> <button type="submit" name="decision" value="deny">Refuse</button></p>
</form>`,
  );
}

export function embeddedLoginPage(action: string, problem?: string): string {
  return page(
    'Log in for development',
    `<p>This is the identity provider that Penstock brings for development: it asks for no password, and believes whom you name. No server that others can reach has it.</p>
${problem === undefined ? '' : `<p role="alert">${escaped(problem)}</p>\n`}<form method="post" action="${escaped(action)}">
<p><label>Login name: <input name="login" maxlength="39" autocomplete="username" autocapitalize="none" spellcheck="false" required autofocus></label></p>
<p><button type="submit">Log in</button></p>
</form>`,
  );
}

export function embeddedConsentPage(action: string, login: string): string {
  return page(
    'Tell Penstock who you are?',
    `<p>Penstock asks to know your login name, <strong>${escaped(login)}</strong>.</p>
<form method="post" action="${escaped(action)}">
<p><button type="submit" name="decision" value="allow">Allow</button> <button type="submit" name="decision" value="deny">Refuse</button></p>
</form>`,
  );
}
