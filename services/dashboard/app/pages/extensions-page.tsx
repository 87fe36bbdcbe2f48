/** The registry: what there is, and of one extension its versions and what it says of itself. */
import type { JSX } from 'preact';
import { useAsked } from '../api/use-asked.ts';
import { WhenAsked } from '../parts/asked.tsx';
import { Name } from '../parts/name.tsx';
import { Empty } from '../parts/states.tsx';
import { Ago } from '../parts/time.tsx';
import { Readme } from './readme.tsx';
import { go, hrefOf, place, withQuery } from '../router.ts';
import { setTitle } from '../parts/title.ts';

const CATEGORIES = ['build', 'test', 'deploy', 'notify', 'security', 'utility'] as const;

export function ExtensionsPage(): JSX.Element {
  const { query } = place.value;
  const asked = useAsked('Extensions', { query: query.get('q'), category: query.get('category') });
  setTitle('Extensions');
  return (
    <>
      <h1>Extensions</h1>
      <form class="filters" role="search" onSubmit={(event) => event.preventDefault()}>
        <label>
          Search
          <input
            type="search"
            value={query.get('q') ?? ''}
            onChange={(event) => go(withQuery({ q: event.currentTarget.value.trim() }), { replace: true })}
          />
        </label>
        <label>
          Category
          <select
            value={query.get('category') ?? ''}
            onChange={(event) => go(withQuery({ category: event.currentTarget.value }), { replace: true })}
          >
            <option value="">any</option>
            {CATEGORIES.map((each) => (
              <option key={each}>{each}</option>
            ))}
          </select>
        </label>
      </form>
      <WhenAsked asked={asked} what="the extensions">
        {({ extensions }) =>
          extensions.length === 0 ? (
            <Empty title="No extension fits" />
          ) : (
            <ul class="cards">
              {extensions.map(({ id, description, latestVersion, downloadCount, visibility }) => (
                <li key={id}>
                  <a href={hrefOf(`/extensions/${id}`)}>
                    <Name text={id} />
                  </a>{' '}
                  {latestVersion} {visibility === 'private' ? <span class="tag">private</span> : null}{' '}
                  <span class="faint">{downloadCount} downloads</span>
                  <p>
                    <Name text={description} />
                  </p>
                </li>
              ))}
            </ul>
          )
        }
      </WhenAsked>
    </>
  );
}

export function ExtensionPage({ id }: { readonly id: string }): JSX.Element {
  const asked = useAsked('Extension', { id });
  setTitle(id);
  return (
    <WhenAsked asked={asked} what="the extension">
      {({ extension, extensionVersions }) => {
        if (extension === null)
          return (
            <Empty title="There is no such extension here">
              <p>
                <a href={hrefOf('/extensions')}>All extensions</a>
              </p>
            </Empty>
          );
        const shown =
          extensionVersions.find(({ version }) => version === extension.latestVersion) ?? extensionVersions[0];
        return (
          <>
            <h1>
              <Name text={extension.id} />
            </h1>
            <p>
              <Name text={extension.description} />
            </p>
            <pre tabIndex={0}>{`uses: ${extension.id}@${extension.latestVersion ?? ''}`}</pre>
            {shown?.readme === null || shown === undefined ? (
              <p class="faint">It says nothing more of itself.</p>
            ) : (
              <Readme text={shown.readme} />
            )}
            <h2>Versions</h2>
            <ul class="cards">
              {extensionVersions.map(({ version, publishedAt, sizeBytes, signed, yanked, packageHash }) => (
                <li key={version} class="row">
                  <strong>{version}</strong>
                  <span class="faint">
                    <Ago at={publishedAt} />, {Number(sizeBytes).toLocaleString()} bytes
                  </span>
                  {signed ? <span class="tag">signed</span> : null}
                  {yanked ? <span class="tag">yanked</span> : null}
                  <code title={packageHash}>{packageHash.slice(0, 12)}</code>
                </li>
              ))}
            </ul>
          </>
        );
      }}
    </WhenAsked>
  );
}
