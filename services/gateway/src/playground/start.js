/** In the browser: starts GraphiQL on the page that `routes.ts` serves. React and GraphiQL are globals of the scripts before it. */
const place = document.getElementById('playground');

// A library inside GraphiQL inserts <style> elements and leaves no door to give them the nonce that the page's policy wants.
const createElement = document.createElement.bind(document);
document.createElement = (name, options) => {
  const element = createElement(name, options);
  if (String(name).toLowerCase() === 'style') element.setAttribute('nonce', place.dataset.nonce);
  return element;
};

const GREETING = `# Penstock's GraphQL API. Run this with the button, or with Ctrl+Enter.
#
# To be somebody, give a token under "Headers" below:
#   { "Authorization": "Bearer <access token, svc_ token or API key>" }

{
  health
  version
}
`;

ReactDOM.createRoot(place).render(
  React.createElement(GraphiQL, {
    fetcher: GraphiQL.createFetcher({ url: '/graphql' }),
    defaultQuery: GREETING,
    defaultEditorToolsVisibility: 'headers',
    isHeadersEditorEnabled: true,
    // A token is not to be left behind in the browser's storage.
    shouldPersistHeaders: false,
  }),
);
