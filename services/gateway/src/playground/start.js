/** In the browser: starts GraphiQL on the page that `routes.ts` serves. React and GraphiQL are globals of the scripts before it. */
const place = document.getElementById('playground');
// Where libraries look for what their <style> elements have to carry.
window.__webpack_nonce__ = place.dataset.nonce ?? place.getAttribute('data-nonce');

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
