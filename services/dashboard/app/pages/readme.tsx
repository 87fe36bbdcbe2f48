/**
 * Markdown of somebody else's as elements of this page: its tokens become elements one by one, never a text of HTML, so that nothing in
 * it is more than text, emphasis, lists, tables, code and links. What reads it is loaded when a readme is first shown.
 */
import { useSignal } from '@preact/signals';
import type { Token, Tokens } from 'marked';
import type { ComponentChildren, JSX } from 'preact';
import { useEffect } from 'preact/hooks';
import { visible, visibleLines } from '../parts/unseen.ts';

/** A readme that is longer is shown as far as this. */
const CHARS_MAX = 200_000;
const DEPTH_MAX = 30;

export function Readme({ text }: { readonly text: string }): JSX.Element {
  // Null: it is not read yet, or is to be shown as it stands.
  const tokens = useSignal<readonly Token[] | null>(null);
  useEffect(() => {
    const stop = new AbortController();
    tokens.value = null;
    void import('./readme-tokens.ts')
      .then(({ tokensOf }) => tokensOf(text.slice(0, CHARS_MAX), stop.signal))
      .then((read) => {
        if (!stop.signal.aborted) tokens.value = read;
      });
    return () => stop.abort();
  }, [text]);
  return (
    <article class="readme">
      {tokens.value === null ? (
        <pre tabIndex={0}>{visibleLines(text.slice(0, CHARS_MAX))}</pre>
      ) : (
        drawn(tokens.value, 0)
      )}
    </article>
  );
}

function drawn(tokens: readonly Token[] | undefined, depth: number): ComponentChildren {
  if (depth > DEPTH_MAX) return null;
  return (tokens ?? []).map((token, index) => <Drawn key={index} token={token} depth={depth + 1} />);
}

function Drawn({ token, depth }: { readonly token: Token; readonly depth: number }): JSX.Element | null {
  const inner = (): ComponentChildren => ('tokens' in token ? drawn(token.tokens, depth) : visible(token.raw));
  switch (token.type) {
    case 'heading':
      // The page's own headings stand above those of a readme.
      return token['depth'] <= 2 ? <h3>{inner()}</h3> : <h4>{inner()}</h4>;
    case 'paragraph':
      return <p>{inner()}</p>;
    case 'strong':
      return <strong>{inner()}</strong>;
    case 'em':
      return <em>{inner()}</em>;
    case 'del':
      return <del>{inner()}</del>;
    case 'codespan':
      return <code>{visible(String(token['text']))}</code>;
    case 'code':
      return <pre tabIndex={0}>{visibleLines(String(token['text']))}</pre>;
    case 'blockquote':
      return <blockquote>{inner()}</blockquote>;
    case 'br':
      return <br />;
    case 'hr':
      return <hr />;
    case 'space':
    case 'def':
      return null;
    case 'list': {
      const { ordered, items } = token as Tokens.List;
      const children = items.map((item, index) => <li key={index}>{drawn(item.tokens, depth)}</li>);
      return ordered ? <ol>{children}</ol> : <ul>{children}</ul>;
    }
    case 'table':
      return <Table table={token as Tokens.Table} depth={depth} />;
    case 'link':
      return <Link href={String(token['href'])}>{inner()}</Link>;
    case 'image':
      // A picture from elsewhere would tell there who reads this.
      return <span class="tag">{visible(String(token['text']) || 'picture')}</span>;
    case 'escape':
      return <>{visible(String(token['text']))}</>;
    default:
      return (
        <>
          {'tokens' in token && token.tokens !== undefined
            ? inner()
            : visible('text' in token ? String(token.text) : token.raw)}
        </>
      );
  }
}

function Link({ href, children }: { readonly href: string; readonly children: ComponentChildren }): JSX.Element {
  if (!/^https?:\/\//iu.test(href)) return <span>{children}</span>;
  return (
    <a href={href} target="_blank" rel="noopener noreferrer nofollow" title={visible(href)}>
      {children}
    </a>
  );
}

function Table({ table, depth }: { readonly table: Tokens.Table; readonly depth: number }): JSX.Element {
  return (
    <table>
      <thead>
        <tr>
          {table.header.map((cell, index) => (
            <th key={index} scope="col">
              {drawn(cell.tokens, depth)}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {table.rows.map((row, index) => (
          <tr key={index}>
            {row.map((cell, at) => (
              <td key={at}>{drawn(cell.tokens, depth)}</td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  );
}
