/**
 * The few pages that auth shows: plain HTML with neither style nor script, for they stand under the same narrow policy as
 * every other answer (`default-src 'none'`), which leaves forms and links. Every value in them is escaped.
 */

export const HTML_TYPE = 'text/html; charset=utf-8';

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
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>${escaped(title)} - Penstock</title></head>
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
