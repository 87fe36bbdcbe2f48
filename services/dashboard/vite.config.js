/** How the dashboard is built: `bootstrap/dashboard.js` calls it. */
import { fileURLToPath } from 'node:url';

export default {
  root: fileURLToPath(new URL('app', import.meta.url)),
  base: '/dashboard/',
  oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
  build: {
    target: 'es2022',
    emptyOutDir: true,
    // An address that begins with `data:` would need a wider Content-Security-Policy.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
  },
};
