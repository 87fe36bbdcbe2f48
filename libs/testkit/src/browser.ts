/** A browser as far as logins need one: cookies by path, redirects, forms. No scripts, so what it can do works without them. */

export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  // Tests look into answers of every shape.
  readonly body: Record<string, unknown>;
}

/** One request, no redirect followed. */
export async function asked(url: string, init: RequestInit): Promise<Answer> {
  const response = await fetch(url, { ...init, redirect: 'manual' });
  const text = await response.text();
  let body: Record<string, unknown> = {};
  try {
    body = JSON.parse(text) as Record<string, unknown>;
  } catch {
    // A page, or nothing.
  }
  return { status: response.status, headers: response.headers, text, body };
}

/** Cookies by path, redirects followed by hand or not at all, forms sent as they stand on the page. */
export class Browser {
  readonly #cookies = new Map<string, { readonly value: string; readonly path: string; readonly origin: string }>();
  /** Each address that was visited. */
  readonly visited: string[] = [];

  async visit(url: string, init: RequestInit = {}): Promise<Answer> {
    const at = new URL(url);
    this.visited.push(url);
    const cookies = [...this.#cookies]
      .filter(([, { path, origin }]) => origin === at.origin && isUnder(at.pathname, path))
      .map(([key, { value }]) => `${key.split(' ')[0]}=${value}`);
    const answer = await asked(url, {
      ...init,
      headers: {
        ...(init.headers as Record<string, string>),
        ...(cookies.length === 0 ? {} : { cookie: cookies.join('; ') }),
      },
    });
    for (const line of answer.headers.getSetCookie()) this.#take(line, at.origin);
    return answer;
  }

  /** Follows redirects until there are none, or one leads to `stopAt`. The last answer, with its address. */
  async follow(
    url: string,
    init: RequestInit = {},
    stopAt?: (url: string) => boolean,
  ): Promise<{ readonly url: string; readonly answer: Answer }> {
    let at = url;
    let answer = await this.visit(at, init);
    for (let hops = 0; hops < 20 && answer.status >= 300 && answer.status < 400; hops += 1) {
      at = new URL(answer.headers.get('location') ?? '', at).href;
      if (stopAt?.(at) === true) break;
      answer = await this.visit(at);
    }
    return { url: at, answer };
  }

  /** Sends the page's form with these fields, hidden ones as they are. */
  async submit(
    page: { readonly url: string; readonly answer: Answer },
    fields: Record<string, string>,
    stopAt?: (url: string) => boolean,
  ): Promise<{ readonly url: string; readonly answer: Answer }> {
    const form = /<form method="post" action="([^"]+)">([\s\S]*?)<\/form>/u.exec(page.answer.text);
    if (form === null) throw new Error(`no form on ${page.url}: ${page.answer.text}`);
    const hidden = [...(form[2] ?? '').matchAll(/<input type="hidden" name="([^"]+)" value="([^"]*)">/gu)].map(
      ([, name = '', value = '']) => [name, value] as const,
    );
    const body = new URLSearchParams({ ...Object.fromEntries(hidden), ...fields }).toString();
    return await this.follow(
      new URL(form[1] ?? '', page.url).href,
      { method: 'POST', body, headers: { 'content-type': 'application/x-www-form-urlencoded' } },
      stopAt,
    );
  }

  #take(line: string, origin: string): void {
    const [pair = '', ...attributes] = line.split(/; */u);
    const at = pair.indexOf('=');
    const attribute = (name: string): string | undefined =>
      attributes.find((text) => text.toLowerCase().startsWith(`${name}=`))?.slice(name.length + 1);
    const path = attribute('path') ?? '/';
    const key = `${pair.slice(0, at)} ${path}`;
    const isOver = attribute('max-age') === '0' || Date.parse(attribute('expires') ?? '') < Date.now();
    if (isOver) this.#cookies.delete(key);
    else this.#cookies.set(key, { value: pair.slice(at + 1), path, origin });
  }
}

function isUnder(pathname: string, path: string): boolean {
  return pathname === path || pathname.startsWith(path.endsWith('/') ? path : `${path}/`);
}
