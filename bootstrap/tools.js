/** The checks' programs inside node_modules, as files that Node itself runs (the links in .bin are shell scripts on Windows). */
export const tools = {
  knip: 'node_modules/knip/bin/knip.js',
  tsc: 'node_modules/typescript/bin/tsc',
  oxfmt: 'node_modules/oxfmt/bin/oxfmt',
  oxlint: 'node_modules/oxlint/bin/oxlint',
  vitest: 'node_modules/vitest/vitest.mjs',
};
