/** The public face of the package: pure functions from text and values to values. */
export type * from './model/definition.ts';
export type * from './model/place.ts';
export { diagnosticLine, formatDiagnostics } from './text/diagnostic-text.ts';
export { bindingsOf, evaluate, renderTemplate, truthy } from './expressions/evaluate.ts';
export { GlobList } from './push/glob.ts';
export { PIPELINE_LIMITS } from './model/limits.ts';
export { PIPELINE_FILES } from './model/pipeline-files.ts';
export { definitionBytes } from './file/definition-bytes.ts';
export type { Lacking } from './file/expansion-budget.ts';
export { parseManifest } from './file/manifest.ts';
export type { ExtensionManifest } from './file/drafts.ts';
export { parsePipeline } from './file/parse.ts';
export { resolveInputs } from './file/resolve-inputs.ts';
export { matchesPush } from './push/push-filter.ts';
export { workdirFault } from './file/workdir.ts';
export { adoptForeign, parseRemembered, recall } from './file/remembered.ts';
export { nearest } from './text/suggest.ts';
export { EXTENSION_CATEGORIES, extensionIdFault, parseUses, usesOf } from './file/uses.ts';
